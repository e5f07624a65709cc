python -m moult_store pack -q draft.json
