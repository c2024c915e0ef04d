package org.apache.hadoop.fs.azurebfs;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.AccessDeniedException;
import java.util.UUID;
import lockstep.hudi.AzureBlobs;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Hadoop's connector for Azure, whose files are there whole or not at all, where that matters. Of the driver's JVM.
 *
 * <p>Hadoop's makes an empty file, appends to it, and flushes. Whoever looks between sees an instant that is complete and
 * says nothing; whoever dies between leaves it. Here a file is put by one request to the Blob endpoint when it is
 * closed, on condition that there is none where the caller wants that, and bears a mark by which an answer that was lost
 * is found out. A file of the timeline is put so whatever its size; others that get larger than WHOLE_MAX, which are
 * nobody's before an instant names them, are written as Hadoop does.
 *
 * <p>In Hadoop's own package, where its like are. Compiled when it is needed (table/hudi/driver/compiled.py): Java as it
 * was before generics, and no lambdas.
 */
public final class WholeAbfsFileSystem extends SecureAzureBlobFileSystem {
  private static final int WHOLE_MAX = 4 * 1024 * 1024;
  private static final int INSTANT_MAX = 512 * 1024 * 1024;
  private static final String TIMELINE = "/timeline";
  private static final int TRIES_MAX = 4;
  private static final long FIRST_PAUSE_MS = 500;
  private static final long TIMEOUT_MS = 30000;

  private AzureBlobs blobs;
  private String container;
  private boolean secure = true;

  public void initialize(URI uri, Configuration settings) throws IOException {
    String[] parts = AzureBlobs.parts(uri.getAuthority());
    container = parts[0];
    secure = !settings.getTrimmed(AzureBlobs.ROOT + "." + parts[1], "").startsWith("http://");
    blobs = AzureBlobs.of(settings, parts[1]);
    super.initialize(uri, settings);
  }

  /** Without TLS only where the endpoint is written so. */
  public boolean isSecureScheme() {
    return secure;
  }

  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int buffer_bytes,
      short replication,
      long block_bytes,
      Progressable progress)
      throws IOException {
    Path whole = makeQualified(path);
    if (!overwrite && exists(whole)) { // who makes log files takes another name then
      throw new FileAlreadyExistsException(whole + " is there already");
    }
    return new FSDataOutputStream(new Whole(this, whole, permission, overwrite), statistics);
  }

  /** As Hadoop does it. */
  OutputStream piecewise(Path path, FsPermission permission, boolean overwrite) throws IOException {
    return super.create(path, permission, overwrite, 4096, (short) 1, 0L, null);
  }

  /** By one request, repeated where it may have had no effect; what has landed unanswered is known by its mark. */
  void put(Path path, byte[] content, boolean overwrite) throws IOException {
    String key = path.toUri().getPath().substring(1);
    String mark = UUID.randomUUID().toString().replace("-", "");
    for (int tried = 1; ; tried++) {
      AzureBlobs.Answer answer = blobs.put(container, key, content, overwrite ? null : "*", mark, TIMEOUT_MS);
      if (answer.isDone()) {
        return;
      }
      if (answer.status == AzureBlobs.PRECONDITION_FAILED || answer.status == 0) {
        AzureBlobs.Answer there = blobs.look(container, key, TIMEOUT_MS);
        if (there.isDone() && mark.equals(there.mark)) {
          return;
        }
        if (there.isDone() && !overwrite) {
          throw new FileAlreadyExistsException(path + " is there already");
        }
      }
      if (tried >= TRIES_MAX || !mayPass(answer.status)) {
        throw refused(path, answer);
      }
      rest(FIRST_PAUSE_MS << tried - 1);
    }
  }

  private static boolean mayPass(int status) {
    return status == 0 || status == AzureBlobs.PRECONDITION_FAILED || status == 408 || status == 429 || status >= 500;
  }

  private static IOException refused(Path path, AzureBlobs.Answer answer) {
    String said = path + " was not written: " + answer.said;
    return answer.status == 401 || answer.status == 403 ? new AccessDeniedException(said) : new IOException(said);
  }

  private static void rest(long pause_ms) throws IOException {
    try {
      Thread.sleep(pause_ms);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while a put was to be repeated");
    }
  }

  /** What is written, until it is closed. */
  static final class Whole extends OutputStream {
    private final WholeAbfsFileSystem owner;
    private final Path path;
    private final FsPermission permission;
    private final boolean overwrite;
    private final int bytes_max;
    private ByteArrayOutputStream content = new ByteArrayOutputStream();
    private OutputStream pieces;
    private boolean closed;

    Whole(WholeAbfsFileSystem owner, Path path, FsPermission permission, boolean overwrite) {
      this.owner = owner;
      this.path = path;
      this.permission = permission;
      this.overwrite = overwrite;
      bytes_max = path.getParent().toString().endsWith(TIMELINE) ? INSTANT_MAX : WHOLE_MAX;
    }

    public synchronized void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    public synchronized void write(byte[] data, int offset, int length) throws IOException {
      if (closed) {
        throw new IOException(path + " is closed");
      }
      if (pieces == null && (long) content.size() + length > bytes_max) {
        pieces = owner.piecewise(path, permission, overwrite);
        content.writeTo(pieces);
        content = null;
      }
      if (pieces == null) {
        content.write(data, offset, length);
      } else {
        pieces.write(data, offset, length);
      }
    }

    public synchronized void flush() throws IOException {
      if (pieces != null && !closed) {
        pieces.flush();
      }
    }

    public synchronized void close() throws IOException {
      if (closed) {
        return;
      }
      closed = true;
      if (pieces == null) {
        owner.put(path, content.toByteArray(), overwrite);
      } else {
        pieces.close();
      }
    }
  }
}
