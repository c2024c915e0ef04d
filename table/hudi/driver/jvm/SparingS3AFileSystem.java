package org.apache.hadoop.fs.s3a;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.OpenFileParameters;

/**
 * Hadoop's connector, of whose open files only so many keep a connection (Connections.java). Of executors in JVMs of
 * their own, which have it from a jar.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class SparingS3AFileSystem extends S3AFileSystem {
  private final Connections connections = new Connections();

  public FSDataInputStream open(Path path, int bufferBytes) throws IOException {
    return connections.sparing(super.open(path, bufferBytes), getConf());
  }

  public CompletableFuture openFileWithOptions(Path path, OpenFileParameters parameters) throws IOException {
    return connections.sparing(super.openFileWithOptions(path, parameters), getConf());
  }

  /** How many files keep a connection now. */
  public int reading() {
    return connections.reading();
  }
}
