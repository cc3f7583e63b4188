"""What people read: figures computed over several results. Imports neither torch nor OpenCompass."""
