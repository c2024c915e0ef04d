package lockstep.hudi;

import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider;
import org.apache.hudi.client.transaction.lock.metrics.HoodieLockMetrics;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * Hudi's file lock, which of one JVM only one holds, whatever any clock says.
 *
 * <p>Hudi's own asks the clock of whoever wants it how old the file is: set forth by a minute while a compaction is
 * being completed, it gives the lock to the commit that waits for it in the same JVM, and both write to the metadata
 * table at once. And whoever was refused it removes the holder's file when he lets go of what he never had. Here the
 * holders of one JVM know of each other, by a clock that nobody sets; those of others still go by the file.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class OneHolderLockProvider extends FileSystemBasedLockProvider {
  private static final String EXPIRE = "hoodie.write.lock.filesystem.expire";

  /** Of a lock file -> who holds it. */
  private static final Map HOLDERS = new ConcurrentHashMap();

  private final transient String file;
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
      taken = super.tryLock(time, unit);
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

  private synchronized void letGo() {
    HeldLocks.release(shown);
    shown = HeldLocks.NONE;
    HOLDERS.remove(file, this);
  }

  /** How long this JVM has held the lock that is this file, by a clock that goes on while all stands still; negative
   * where it does not hold it. */
  public static double heldS(String path) {
    Iterator held = HOLDERS.entrySet().iterator();
    while (held.hasNext()) {
      Map.Entry one = (Map.Entry) held.next();
      if (((String) one.getKey()).endsWith(path)) {
        return HeldLocks.up_s() - ((OneHolderLockProvider) one.getValue()).sinceBoot_s;
      }
    }
    return -1;
  }

  private boolean hasLostIt() {
    return lives_ns > 0 && System.nanoTime() - since_ns > lives_ns;
  }
}
