package lockstep.hudi;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider;
import org.apache.hudi.client.transaction.lock.metrics.HoodieLockMetrics;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.storage.StorageConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hudi's file lock, which of one JVM only one holds, whatever any clock says.
 *
 * <p>Hudi's own asks the clock of whoever wants it how old the file is: set forth by a minute while a compaction is
 * being completed, it gives the lock to the commit that waits for it in the same JVM, and both write to the metadata
 * table at once. And whoever was refused it removes the holder's file when he lets go of what he never had. Here the
 * holders of one JVM know of each other, by a clock that nobody sets; those of others still go by the file.
 *
 * <p>And the file says which process holds it, in Hudi's own form, from when it is there: Hudi's is empty on a file
 * system. Whoever shares the machine and finds that process gone need not wait until it expires
 * (table/hudi/driver/holder.py).
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class OneHolderLockProvider extends FileSystemBasedLockProvider {
  private static final Logger LOG = LoggerFactory.getLogger(OneHolderLockProvider.class);

  /** Before the name of the process, in the lock file. */
  private static final String HELD_BY = "lockstep ";

  private static final String EXPIRE = "hoodie.write.lock.filesystem.expire";

  /** Of a lock file -> who holds it. */
  private static final Map HOLDERS = new ConcurrentHashMap();

  /** Nobody removes a lock so soon after it was taken. */
  private static final long OURS_S = 10;

  private static final OpenOption[] NEW = new OpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE};

  private final transient String file;
  private final transient Path place;
  private final transient FileSystem files;
  private final transient long lives_ns;
  private transient volatile long since_ns;
  private transient volatile double sinceBoot_s;
  private transient volatile int shown = HeldLocks.NONE;

  public OneHolderLockProvider(LockConfiguration lock, StorageConfiguration storage) {
    this(lock, storage, null);
  }

  /** As Hudi makes it, by its name. */
  public OneHolderLockProvider(LockConfiguration lock, StorageConfiguration storage, HoodieLockMetrics metrics) {
    super(lock, storage, metrics);
    file = getLock();
    place = new Path(file);
    try {
      files = place.getFileSystem((Configuration) storage.unwrap());
    } catch (IOException error) {
      throw new HoodieIOException("the table lock " + file + " cannot be reached", error);
    }
    lives_ns = TimeUnit.MINUTES.toNanos(lock.getConfig().getInteger(EXPIRE, 0));
  }

  public boolean tryLock(long time, TimeUnit unit) {
    OneHolderLockProvider other = (OneHolderLockProvider) HOLDERS.get(file);
    if (other != null && other.hasLostIt()) { // who holds it and never lets go has it no longer than the file says
      other.letGo();
    } else if (other == this) { // asked again by whoever holds it
      return false;
    }
    since_ns = System.nanoTime();
    sinceBoot_s = HeldLocks.up_s();
    if (HOLDERS.putIfAbsent(file, this) != null) {
      return false;
    }
    boolean taken = false;
    try {
      shown = HeldLocks.hold(TimeUnit.NANOSECONDS.toMillis(lives_ns));
      taken = make();
    } finally {
      if (!taken) {
        letGo();
      }
    }
    return taken;
  }

  public void unlock() {
    if (HOLDERS.get(file) == this) {
      try {
        super.unlock();
      } finally {
        letGo();
      }
    }
  }

  /** Hudi closes with each unlock, and after each refusal. */
  public void close() {
    if (HOLDERS.get(file) == this) {
      try {
        super.close();
      } finally {
        letGo();
      }
    }
  }

  /** Whether the file was made, which from then on is ours. */
  private boolean make() {
    byte[] content = content();
    try {
      if (isHeld()) {
        reloadCurrentOwnerLockInfo();
        return false;
      }
      write(content);
      return true;
    } catch (Exception error) { // somebody was quicker, or storage does not do it, in its words or Hudi's: it asks again
      LOG.info("the table lock " + file + " was not taken: " + error);
      return false;
    }
  }

  /** Whether somebody has it; one that has expired is removed. */
  private boolean isHeld() throws IOException {
    try {
      long age_ms = System.currentTimeMillis() - files.getFileStatus(place).getModificationTime();
      if (lives_ns == 0 || age_ms <= TimeUnit.NANOSECONDS.toMillis(lives_ns)) {
        return true;
      }
    } catch (FileNotFoundException nobody) {
      return false;
    }
    LOG.warn("the table lock " + file + " has expired, and is removed");
    files.delete(place, false);
    return false;
  }

  /** Create it, where it is not there. What is written shows at once, or within the moment that it takes to close. */
  private void write(byte[] content) throws IOException {
    OutputStream made = "file".equals(files.getScheme())
        ? Files.newOutputStream(Paths.get(place.toUri().getPath(), new String[0]), NEW) // Hadoop's looks, and creates
        : files.create(place, false);
    boolean whole = false;
    try {
      made.write(content);
      made.close();
      whole = true;
    } finally {
      if (!whole && System.nanoTime() - since_ns < TimeUnit.SECONDS.toNanos(OURS_S)) {
        files.delete(place, false);
      }
    }
  }

  /** As Hudi writes it where it writes any: no two times that it is taken say the same. */
  private static byte[] content() {
    String at = new SimpleDateFormat("yyyy-MM-dd HH:mm:ss.SSS").format(new Date());
    String by = HELD_BY + Processes.THIS + " " + System.nanoTime();
    String said = "{\"lockCreateTime\": \"" + at + "\", \"lockThreadName\": \"" + by + "\", \"lockStacksInfo\": \""
        + purpose() + "\"}";
    return said.getBytes(StandardCharsets.UTF_8);
  }

  /** What in Hudi has asked for the lock, for a person. */
  private static String purpose() {
    StackTraceElement[] stack = Thread.currentThread().getStackTrace();
    StringBuilder asked = new StringBuilder();
    for (int at = 0; at < stack.length; at++) {
      if (stack[at].getClassName().startsWith("org.apache.hudi.")) {
        asked.append(stack[at].getClassName()).append('.').append(stack[at].getMethodName()).append("\\n");
      }
    }
    return asked.toString();
  }

  private synchronized void letGo() {
    HeldLocks.release(shown);
    shown = HeldLocks.NONE;
    HOLDERS.remove(file, this);
  }

  /** How long this JVM has held the lock that is this file, by a clock that goes on while all stands still; negative
   * where it does not hold it. */
  public static double heldS(String path) {
    Path wanted = new Path(path);
    Iterator held = HOLDERS.entrySet().iterator();
    while (held.hasNext()) {
      Map.Entry one = (Map.Entry) held.next();
      Path there = new Path((String) one.getKey());
      boolean same = wanted.toUri().getScheme() == null && there.toUri().getPath().equals(wanted.toUri().getPath());
      if (same || there.equals(wanted)) {
        return HeldLocks.up_s() - ((OneHolderLockProvider) one.getValue()).sinceBoot_s;
      }
    }
    return -1;
  }

  private boolean hasLostIt() {
    return lives_ns > 0 && System.nanoTime() - since_ns > lives_ns;
  }
}
