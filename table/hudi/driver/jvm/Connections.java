package org.apache.hadoop.fs.s3a;

import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CanSetReadahead;
import org.apache.hadoop.fs.CanUnbuffer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;

/**
 * The connections of files that are read, of which only so many are kept.
 *
 * <p>Hudi 1.2.0 leaves two files open for each block of parquet that it reads from a log, and nobody ever closes them.
 * With Hadoop's own connector each keeps a connection until the whole connector is closed, and once the pool is empty
 * nothing can be read any more. Here, where one more file wants to read than may at once, the one that has been reading
 * for longest gives its connection back; should it be read again, it takes one, at the place where it was.
 *
 * <p>It uses what Hadoop opens to everybody: in an executor it may be loaded by another loader. Compiled when it is needed
 * (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
final class Connections {
  private static final String READING_MAX = "fs.s3a.lockstep.reading.max";
  private static final int READING_MAX_DEFAULT = 96;

  private final Reading reading = new Reading();

  /** `conf`: says how many files may keep one, of one bucket and user in this JVM; fewer than the pool has. */
  FSDataInputStream sparing(FSDataInputStream file, Configuration conf) {
    reading.max = conf.getInt(READING_MAX, READING_MAX_DEFAULT);
    return new FSDataInputStream(new Sparing(file, reading));
  }

  /** Hadoop has opened it, but for a thread that it wants no more: waiting costs nobody anything. */
  CompletableFuture sparing(CompletableFuture file, Configuration conf) {
    CompletableFuture opened = new CompletableFuture();
    try {
      opened.complete(sparing((FSDataInputStream) file.get(), conf));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      opened.completeExceptionally(error);
    } catch (ExecutionException error) {
      opened.completeExceptionally(error.getCause());
    }
    return opened;
  }

  /** How many files keep a connection now. */
  int reading() {
    return reading.size();
  }

  /** The files that may have a connection, those that have had one for longest first. */
  private static final class Reading {
    private final Set files = new LinkedHashSet();
    volatile int max = READING_MAX_DEFAULT;

    synchronized int size() {
      return files.size();
    }

    synchronized void remove(Sparing file) {
      files.remove(file);
    }

    synchronized void add(Sparing file) {
      files.add(file);
    }

    synchronized List oldest() {
      List found = new ArrayList();
      Iterator all = files.iterator();
      for (int more = files.size() - max; more > 0 && all.hasNext(); more--) {
        found.add(all.next());
      }
      return found;
    }

    /** One that is being read from keeps its connection: its reader would wait for this thread, and may hold others up. */
    void spare() {
      Iterator old = oldest().iterator();
      while (old.hasNext()) {
        ((Sparing) old.next()).rest();
      }
    }
  }

  /** A file that somebody has opened. One reads from it at a time, as with Hadoop's own. */
  private static final class Sparing extends FSInputStream
      implements CanSetReadahead, CanUnbuffer, StreamCapabilities, IOStatisticsSource {
    private final FSDataInputStream file;
    private final Reading reading;
    private final ReentrantLock busy = new ReentrantLock();
    private boolean listed;

    Sparing(FSDataInputStream file, Reading reading) {
      this.file = file;
      this.reading = reading;
    }

    /** Somebody is about to read. */
    private void begin() {
      busy.lock();
      if (!listed) {
        listed = true;
        reading.add(this);
      }
    }

    private void end() {
      busy.unlock();
      reading.spare();
    }

    /** Give the connection back, unless somebody reads. */
    void rest() {
      if (busy.tryLock()) {
        try {
          unlist();
          file.unbuffer();
        } finally {
          busy.unlock();
        }
      }
    }

    private void unlist() {
      if (listed) {
        listed = false;
        reading.remove(this);
      }
    }

    public int read() throws IOException {
      begin();
      try {
        return file.read();
      } finally {
        end();
      }
    }

    public int read(byte[] into, int at, int length) throws IOException {
      begin();
      try {
        return file.read(into, at, length);
      } finally {
        end();
      }
    }

    public int read(long position, byte[] into, int at, int length) throws IOException {
      begin();
      try {
        return file.read(position, into, at, length);
      } finally {
        end();
      }
    }

    public void readFully(long position, byte[] into, int at, int length) throws IOException {
      begin();
      try {
        file.readFully(position, into, at, length);
      } finally {
        end();
      }
    }

    public void seek(long position) throws IOException {
      if (position < 0) {
        throw new EOFException("before the begin of the file: " + position);
      }
      busy.lock();
      try {
        file.seek(position);
      } finally {
        busy.unlock();
      }
    }

    public long getPos() throws IOException {
      return file.getPos();
    }

    public boolean seekToNewSource(long position) throws IOException {
      return file.seekToNewSource(position);
    }

    public int available() throws IOException {
      return file.available();
    }

    public void close() throws IOException {
      busy.lock();
      try {
        unlist();
        file.close();
      } finally {
        busy.unlock();
      }
    }

    public void unbuffer() {
      busy.lock();
      try {
        unlist();
        file.unbuffer();
      } finally {
        busy.unlock();
      }
    }

    public void setReadahead(Long bytes) throws IOException {
      file.setReadahead(bytes);
    }

    public boolean hasCapability(String capability) {
      return file.hasCapability(capability);
    }

    public IOStatistics getIOStatistics() {
      return file.getIOStatistics();
    }

    public String toString() {
      return file.toString();
    }
  }
}
