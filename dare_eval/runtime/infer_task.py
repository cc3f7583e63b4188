"""``DiffusionInferTask``: upstream's inference task with our inferencer swapped in and failures written down.

The data set's config names upstream's inferencer; it is replaced when it is built (``runtime.swapping``), so the config
and its prompt hash stay untouched. A data set that fails does not stop the others of the task.

    python -m dare_eval.runtime.infer_task PARAMS.py      (what a runner calls for models with several processes)
"""

from __future__ import annotations

import copy
import random
import sys
from pathlib import Path
from typing import Any

from opencompass.tasks import OpenICLInferTask
from opencompass.utils import build_model_from_cfg, dataset_abbr_from_cfg, model_abbr_from_cfg

from dare_eval.errors import DareError
from dare_eval.inferencers.item_loop import ItemContext
from dare_eval.runtime.binding import bind_loaded
from dare_eval.runtime.built import build, rows_of
from dare_eval.runtime.data_paths import share_data_root
from dare_eval.runtime.failures import failure_from, record_failure
from dare_eval.runtime.manifests import note_device
from dare_eval.runtime.plan import Pair, plan_pair
from dare_eval.runtime.sidecars import write_sidecar
from dare_eval.runtime.swapping import swapped


class DiffusionInferTask(OpenICLInferTask):
    """Decodes the data sets of one model; ends with exit code 1 when one of them failed."""

    name_prefix = "DiffusionInfer"

    def get_command(self, cfg_path: str, template: str) -> str:
        """Return the command of this task in an interpreter of its own (torchrun for several processes)."""
        launcher = f"{sys.executable} "
        if self.num_gpus > 1 and self.num_procs > 1:
            port = random.SystemRandom().randint(12000, 32000)
            launcher += f"-m torch.distributed.run --master_port={port} --nproc_per_node {self.num_procs} "
        return template.format(task_cmd=f"{launcher}-m dare_eval.runtime.infer_task {cfg_path}")

    def run(self, cur_model: Any = None, cur_model_abbr: str | None = None) -> None:
        """Decode every data set of the task; raises ``SystemExit(1)`` after the last when one failed."""
        share_data_root()
        failed = 0
        for model_cfg, dataset_cfgs in zip(self.model_cfgs, self.dataset_cfgs, strict=True):
            self.model_cfg = model_cfg
            self.max_out_len = self.model_cfg.get("max_out_len")
            self.batch_size = self.model_cfg.get("batch_size")
            self.min_out_len = self.model_cfg.get("min_out_len")
            try:
                same = cur_model is not None and cur_model_abbr == model_abbr_from_cfg(self.model_cfg)
                self.model = cur_model if same else build_model_from_cfg(self.model_cfg)
            except Exception as error:
                failed += len(dataset_cfgs)
                for dataset_cfg in dataset_cfgs:
                    self._note(error, dataset_cfg)
                continue
            self._note_device()
            for dataset_cfg in dataset_cfgs:
                self.dataset_cfg = dataset_cfg
                failed += not self._run_one()
        if failed:
            raise SystemExit(1)

    def _run_one(self) -> bool:
        folder = Path(self.work_dir) / "predictions" / model_abbr_from_cfg(self.model_cfg)
        output = folder / f"{dataset_abbr_from_cfg(self.dataset_cfg)}.json"
        if output.exists():
            return True
        try:
            self.dataset = build(self.dataset_cfg)
            pair, context = self._context()
            bind_loaded(self.model, self.model_cfg, self.dataset_cfg)
            self.infer_cfg = swapped(self.dataset_cfg, self.model, context)
            self.sub_cfg = {"models": [self.model_cfg], "datasets": [[self.dataset_cfg]]}
            self._inference()
            if self.is_main_process():
                write_sidecar(output, pair.settings)
        except Exception as error:
            self._note(error, self.dataset_cfg)
            return False
        return True

    def _context(self) -> tuple[Pair, ItemContext]:
        """Return the plan of the whole data set and the rows of this part."""
        name = dataset_abbr_from_cfg(self.dataset_cfg)
        place = self.cfg.get("dare", {}).get(name, {"base": name, "offset": 0})
        whole = _whole(self.dataset_cfg, place) if place["base"] != name else self.dataset_cfg
        pair = plan_pair(self.model_cfg, whole)
        start = int(place["offset"])
        rows = rows_of(whole)[start : start + len(self.dataset.test)]
        return pair, ItemContext(place["base"], rows, pair.fingerprint)

    def _note(self, error: Exception, dataset_cfg: Any) -> None:
        name = dataset_abbr_from_cfg(dataset_cfg)
        names = {
            "model": model_abbr_from_cfg(self.model_cfg),
            "dataset": self.cfg.get("dare", {}).get(name, {}).get("base", name),
        }
        failure = failure_from(error, stage="infer", log=self.get_log_path("out"), **names)
        record_failure(self.work_dir, failure)
        shown = failure.trace if not isinstance(error, DareError) else f"{error}\n{failure.trace}"
        self.logger.error(f"{names['model']}/{names['dataset']}: {shown}")

    def _note_device(self) -> None:
        network = getattr(self.model, "network", None)
        if network is not None and self.is_main_process():
            first = next(iter(network.parameters()))
            backend = str(getattr(network, "attn_backend", ""))
            device = {
                "device": str(first.device),
                "dtype": str(first.dtype).removeprefix("torch."),
                "attn_backend": backend,
            }
            note_device(Path(self.work_dir), device)

    @staticmethod
    def is_main_process() -> bool:
        """Whether this process writes files (rank 0 of a distributed model)."""
        from mmengine.dist import is_main_process

        return bool(is_main_process())


def _whole(part_cfg: Any, place: Any) -> Any:
    """Return the config of the data set that a part was cut from."""
    whole = copy.deepcopy(part_cfg)
    whole["abbr"] = place["base"]
    del whole["reader_cfg"]["test_range"]
    if place.get("test_range") is not None:
        whole["reader_cfg"]["test_range"] = place["test_range"]
    return whole


def main() -> None:
    """Run the task in the params file named on the command line."""
    from mmengine.config import Config

    DiffusionInferTask(Config.fromfile(sys.argv[1])).run()


if __name__ == "__main__":
    main()
