package org.apache.hadoop.fs.s3a;

import java.io.EOFException;
import java.io.IOException;
import org.apache.hadoop.fs.FSInputStream;

/**
 * A file that was read whole.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
final class Content extends FSInputStream {
  private final byte[] content;
  private int at;

  Content(byte[] content) {
    this.content = content;
  }

  public int read() {
    return at < content.length ? content[at++] & 0xff : -1;
  }

  public int read(byte[] into, int from, int length) {
    if (length > 0 && at >= content.length) {
      return -1;
    }
    int some = Math.min(length, content.length - at);
    System.arraycopy(content, at, into, from, some);
    at += some;
    return some;
  }

  public void seek(long position) throws IOException {
    if (position < 0 || position > content.length) {
      throw new EOFException("beyond the file: " + position);
    }
    at = (int) position;
  }

  public long getPos() {
    return at;
  }

  public boolean seekToNewSource(long position) {
    return false;
  }

  public int available() {
    return content.length - at;
  }
}
