"""What spark-submit starts, alone in its folder: a script's folder comes first on the path."""
