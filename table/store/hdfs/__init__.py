"""Tables on HDFS, as the Python side reaches them: by hdfs-native, which needs neither a JVM nor libhdfs."""
