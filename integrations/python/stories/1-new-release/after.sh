python -m moult_store pack -q 1/data.db --product org.example.app --version 1.0.0
python -m moult_store pack -q 2/data.db --version 2.0.0
