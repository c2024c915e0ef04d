package lockstep.hudi;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The object that is Hudi's table lock in an object store, read and written on condition: all of it that does not depend
 * on which store that is. A subclass sends single requests, and repeats none.
 *
 * <p>Hudi's StorageBasedLockProvider looks for a class by the scheme, and has its own in modules of which each takes other
 * settings, and counts a write without an answer as unknown. These take the settings of Hadoop's connector, as everything
 * else of the table does; no request is repeated behind their back; and a write without an answer is read, for the object
 * says who wrote it last and until when it is his.
 *
 * <p>The object and its fields are Hudi's own, so that writers which have Hudi's class share the lock. Of the owner
 * this one says more than a random word: which process it is, so that whoever shares its machine can tell that it is
 * dead, and does not wait for the lease.
 *
 * <p>Compiled when it is needed, by the compiler that Spark brings (table/hudi/driver/lock_client.py): Java as it was
 * before generics, as far as that compiler sees, and no lambdas.
 */
public abstract class StorageLock implements StorageLockClient {
  public static final Logger LOG = LoggerFactory.getLogger(StorageLock.class);
  private static final String VALIDITY = "hoodie.write.lock.storage.validity.timeout.secs";
  private static final long VALIDITY_S = 300;
  public static final int LOCK_BYTES_MAX = 64 * 1024;
  /** So many fit into a lease, each at its longest. */
  public static final int REQUESTS_A_LEASE = 5;

  private static final int TRIES_MAX = 3;
  public static final int NOT_FOUND = 404;
  private static final int CONFLICT = 409;
  private static final int PRECONDITION_FAILED = 412;
  public static final int TOO_MANY_REQUESTS = 429;
  private static final int SERVER_ERROR = 500;
  private static final int UNAVAILABLE = 503;

  /** Hadoop's settings, for which the lock provider has no place. */
  protected static volatile Configuration settings = new Configuration();

  /** Owners of this process that may hold a lock. */
  private static final Map OPEN = new ConcurrentHashMap();

  /** Another object whenever a lock was taken here. */
  private static final AtomicReference WRITTEN = new AtomicReference(new Object());

  /** Of the addresses of tables whose lock is held here -> another object with each time that it was taken or renewed. */
  private static final Map HELD = new ConcurrentHashMap();

  /** Of locks, by place, what this process wrote when it gave them back. */
  private static final Map LEFT = new ConcurrentHashMap();

  /** Of objects that Hudi asks for with each lock, and that were not there, when. */
  private static final Map ABSENT = new ConcurrentHashMap();

  private static final long ABSENT_NS = TimeUnit.MINUTES.toNanos(1);

  /** Where Hudi has the lock, below a table. */
  private static final String BELOW_TABLE = "/.hoodie/.locks/";

  private static final String PROCESS = Processes.THIS;
  private static final String DEAD = "that process is dead";

  /** That a lock is held is said by the time when it ends: so long from now. */
  private static final long HELD_MS = 3600000;

  /** So long what a process has sent may still be on its way when it is dead. */
  private static final long SETTLED_MS = 3000;

  protected final String bucket;
  protected final long validity_s;
  private final String scheme;
  private final String owner;
  private final String key;
  private final long validity_ms;
  private int shown = HeldLocks.NONE;
  /** What is to be replaced was not read: of a taking alone. */
  private boolean guessed;

  private Object mine = new Object();
  private boolean closed;

  /** `scheme`: as Hadoop's connector has it. */
  protected StorageLock(String scheme, String ownerId, String lockFileUri, Properties properties) {
    String[] place = placeOf(lockFileUri);
    this.scheme = scheme;
    owner = ownerId;
    bucket = place[0];
    key = place[1];
    Object validity = properties.get(VALIDITY);
    validity_s = validity == null ? VALIDITY_S : Long.parseLong(validity.toString().trim());
    validity_ms = 1000 * validity_s;
    OPEN.put(owner, Boolean.TRUE);
  }

  // --- what a store does: each is one request, and raises Refused ------------------------------------------

  /** What a store says no with, or what is known where no answer came. */
  public static final class Refused extends RuntimeException {
    /** 0 where no answer came. */
    public final int status;

    /** What is missing is the bucket. */
    public final boolean noBucket;

    public Refused(int status, boolean noBucket, String said, RuntimeException cause) {
      super(said, cause);
      this.status = status;
      this.noBucket = noBucket;
    }

    /** For whoever is to be told. */
    public RuntimeException told() {
      return getCause() instanceof RuntimeException ? (RuntimeException) getCause() : this;
    }
  }

  /** Content, and what tells it from its successor. */
  public static final class Found {
    public final byte[] content;
    public final String tag;

    public Found(byte[] content, String tag) {
      this.content = content;
      this.tag = tag;
    }
  }

  protected abstract Found get(String bucket, String key);

  /** Its tag. `tag`: of the object that is replaced, null where none may be there. */
  protected abstract String put(String bucket, String key, byte[] content, String tag);

  /** Whatever is there. */
  protected abstract void putAnyway(String bucket, String key, byte[] content);

  protected abstract void delete(String bucket, String key);

  /** A tag that no object has. */
  protected abstract String noTag();

  /** How the store calls the conditions that nothing is there, and that a tag is. */
  protected abstract String[] conditions();

  /** How long to wait before the same is asked again of a store that has provably done nothing; 0: not at all. */
  protected long pause_ms(int status) {
    return 0;
  }

  /** How stores are reached by those that are made from now on. */
  public static void configure(Configuration how) {
    settings = new Configuration(how); // credentials are made anew for it
  }

  /** Holds another object whenever a lock was taken here, before its holder goes on. */
  public static AtomicReference written() {
    return WRITTEN;
  }

  /** Of the addresses of tables whose lock is held here -> another object with each time that it was taken or renewed. */
  public static Map held() {
    return HELD;
  }

  // --- the lock -------------------------------------------------------------------------------------------

  /** Asked by whoever does not hold the lock: one that nobody can hold any more is told as expired. What this process
   * was the last to give back, as far as it knows, is not read: where another has had it since, the condition fails. */
  public Pair readCurrentLockFile() {
    StorageLockFile left = (StorageLockFile) LEFT.remove(place());
    if (left != null) {
      guessed = true;
      return Pair.of(LockGetResult.SUCCESS, Option.of(left));
    }
    guessed = false;
    Pair read = read();
    Option found = (Option) read.getRight();
    if (!found.isPresent()) {
      return read;
    }
    StorageLockFile lock = (StorageLockFile) found.get();
    if (lock.isExpired()) {
      return read;
    }
    if (isHeldHere(lock.getOwner())) { // whatever the clock says, which somebody may have set
      long later = System.currentTimeMillis() + HELD_MS;
      StorageLockData held = new StorageLockData(false, later, lock.getOwner());
      return Pair.of(LockGetResult.SUCCESS, Option.of(new StorageLockFile(held, lock.getVersionId())));
    }
    String why = whyNobodys(lock.getOwner());
    if (why.isEmpty()) {
      return read;
    }
    if (why.equals(DEAD)) {
      rest(SETTLED_MS);
    }
    LOG.warn("lock {}: it was held by {}: {}; it is free again", new Object[] {place(), lock.getOwner(), why});
    StorageLockData freed = new StorageLockData(true, lock.getValidUntilMs(), lock.getOwner());
    return Pair.of(LockGetResult.SUCCESS, Option.of(new StorageLockFile(freed, lock.getVersionId())));
  }

  /** `previous`: what is to be replaced; where it is absent, nothing may be there.
   *
   * <p>The lock is held for its guardian from before it is taken, and anew from before each renewal that succeeded. It is
   * held no more as soon as it is to be given back: nothing is done under it from then on, and the put's condition takes
   * it from nobody. One that could not be given back is others' for Hudi, which else would hold it without renewing it;
   * here it is nobody's, whom the next of this process replaces. */
  public Pair tryUpsertLockFile(StorageLockData wanted, Option previous) {
    return wanted.isExpired() ? giveBack(wanted, previous) : hold(wanted, previous);
  }

  private Pair giveBack(StorageLockData wanted, Option previous) {
    guessed = false;
    letGo();
    try {
      Pair result = upsert(wanted, previous);
      if (result.getLeft() == LockUpsertResult.SUCCESS) {
        LEFT.put(place(), ((Option) result.getRight()).get());
      }
      if (result.getLeft() == LockUpsertResult.SUCCESS || result.getLeft() == LockUpsertResult.ACQUIRED_BY_OTHERS) {
        return result;
      }
      LOG.warn("lock {} could not be given back: it stands there until another takes it or its lease is over", place());
      return Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, Option.empty());
    } finally {
      OPEN.remove(owner);
    }
  }

  private Pair hold(StorageLockData wanted, Option previous) {
    long since_ms = HeldLocks.up_ms();
    boolean takes = take();
    guessed = guessed && takes; // what is renewed was written here: where another is there, it was lost
    boolean done = false;
    try {
      Pair result = upsert(wanted, previous);
      done = result.getLeft() == LockUpsertResult.SUCCESS;
      return result;
    } finally {
      if (done) {
        renewed(since_ms, takes);
      } else if (takes) {
        letGo();
      } else {
        notSure();
      }
    }
  }

  /** Whether it was not held before. */
  private synchronized boolean take() {
    if (closed || shown != HeldLocks.NONE) {
      return false;
    }
    OPEN.put(owner, Boolean.TRUE);
    shown = HeldLocks.hold(validity_ms);
    return true;
  }

  private synchronized void renewed(long since_ms, boolean taken) {
    HeldLocks.renew(shown, since_ms);
    if (taken) {
      WRITTEN.set(new Object());
    }
    if (shown != HeldLocks.NONE) {
      mine = new Object();
      HELD.put(table(), mine);
    }
  }

  /** A renewal that has not succeeded: others may have it soon. */
  private synchronized void notSure() {
    HELD.remove(table(), mine);
  }

  private String table() {
    int end = key.indexOf(BELOW_TABLE);
    return scheme + "://" + bucket + "/" + (end < 0 ? key : key.substring(0, end));
  }

  private synchronized void letGo() {
    HELD.remove(table(), mine);
    HeldLocks.release(shown);
    shown = HeldLocks.NONE;
  }

  private Pair upsert(StorageLockData wanted, Option previous) {
    StorageLockFile before = previous.isPresent() ? (StorageLockFile) previous.get() : null;
    for (int tried = 1; ; tried++) {
      int status = 0;
      String why = "";
      try {
        String tag = put(bucket, key, content(wanted), before == null ? null : before.getVersionId());
        return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(wanted, tag)));
      } catch (Refused refused) {
        status = refused.status;
        why = refused.getMessage();
        if (status != 0 && !mayPass(status) && status != PRECONDITION_FAILED && status != NOT_FOUND) {
          throw refused.told();
        }
      }
      if (tried < TRIES_MAX && hasRested(status)) {
        continue;
      }
      Pair read = read();
      Option found = (Option) read.getRight();
      StorageLockFile there = found.isPresent() ? (StorageLockFile) found.get() : null;
      if (there != null && same(there, wanted)) {
        return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(wanted, there.getVersionId())));
      }
      boolean known = read.getLeft() != LockGetResult.UNKNOWN_ERROR;
      boolean ours = there != null && (owner + " " + PROCESS).equals(there.getOwner());
      if (known && status == PRECONDITION_FAILED && ours && tried < TRIES_MAX) {
        before = there; // an earlier write of this very holder has landed late
        continue;
      }
      if (status == PRECONDITION_FAILED && guessed && there != null && there.isExpired() && tried < TRIES_MAX) {
        before = there; // others have had it since
        continue;
      }
      boolean unchanged = before == null ? there == null : there != null && tag(before).equals(tag(there));
      if (known && !unchanged && !ours) {
        return Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, Option.empty());
      }
      LOG.warn("lock {} could not be written: {}", place(), why);
      boolean throttled = status == TOO_MANY_REQUESTS || status == UNAVAILABLE;
      return Pair.of(throttled ? LockUpsertResult.THROTTLED : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  private Pair read() {
    try {
      Found found = get(bucket, key);
      StorageLockFile lock = StorageLockFile.createFromStream(new ByteArrayInputStream(found.content), found.tag);
      return Pair.of(LockGetResult.SUCCESS, Option.of(lock));
    } catch (Refused refused) {
      if (refused.status == NOT_FOUND && !refused.noBucket) {
        return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      }
      if (refused.status != 0 && !mayPass(refused.status)) {
        throw refused.told();
      }
      LOG.warn("lock {} cannot be read: {}", place(), refused.getMessage());
    }
    return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
  }

  private byte[] content(StorageLockData wanted) {
    String whose = owner.equals(wanted.getOwner()) ? owner + " " + PROCESS : wanted.getOwner();
    return StorageLockFile.toByteArray(new StorageLockData(wanted.isExpired(), wanted.getValidUntil(), whose));
  }

  private static boolean same(StorageLockFile found, StorageLockData wanted) {
    return first(found.getOwner()).equals(first(wanted.getOwner()))
        && found.getValidUntilMs() == wanted.getValidUntil()
        && found.isExpired() == wanted.isExpired();
  }

  private static String tag(StorageLockFile lock) {
    return lock.getVersionId();
  }

  private static boolean mayPass(int status) {
    return status == CONFLICT || status == TOO_MANY_REQUESTS || status >= SERVER_ERROR;
  }

  private String place() {
    return scheme + "://" + bucket + "/" + key;
  }

  // --- holders --------------------------------------------------------------------------------------------

  /** Whether the same may be asked again, now that it has waited. */
  private boolean hasRested(int status) {
    return pause_ms(status) > 0 && rest(pause_ms(status));
  }

  /** Whether nobody has interrupted it. */
  private static boolean rest(long pause_ms) {
    try {
      Thread.sleep(pause_ms);
      return true;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Why nobody can hold a lock with this owner; empty where somebody may. */
  private static String whyNobodys(String whose) {
    String[] words = whose.split(" ", 2);
    if (words.length < 2) {
      return ""; // Hudi's own class says no more than a random word
    }
    if (words[1].equals(PROCESS)) {
      return "this process, which has let go of it, or tries again";
    }
    return Processes.isDead(words[1]) ? DEAD : "";
  }

  /** Whether another of this very process has taken it and not been closed since. */
  private boolean isHeldHere(String whose) {
    String[] words = whose.split(" ", 2);
    boolean here = words.length == 2 && words[1].equals(PROCESS);
    return here && !words[0].equals(owner) && OPEN.containsKey(words[0]);
  }

  private static String first(String whose) {
    return whose.split(" ", 2)[0];
  }

  // --- a server that does not keep conditions ---------------------------------------------------------------

  /** Which condition the server takes and does not keep; empty where it keeps all. Beside the lock, on an object
   * that is removed again. */
  public String ignored() {
    String probe = key.substring(0, key.lastIndexOf('/') + 1) + "probe-" + UUID.randomUUID();
    try {
      String tag = putPatiently(probe, '1', null);
      if (!refuses(probe, null)) {
        return conditions()[0];
      }
      if (!refuses(probe, noTag())) {
        return conditions()[1];
      }
      putPatiently(probe, '2', tag);
      return refuses(probe, tag) ? "" : conditions()[1];
    } catch (Refused refused) {
      throw refused.told();
    } finally {
      delete(bucket, probe);
    }
  }

  private boolean refuses(String probe, String tag) {
    try {
      putPatiently(probe, '3', tag);
      return false;
    } catch (Refused refused) {
      if (refused.status == PRECONDITION_FAILED || refused.status == CONFLICT) {
        return true;
      }
      throw refused;
    }
  }

  private String putPatiently(String probe, char what, String tag) {
    for (int tried = 1; ; tried++) {
      try {
        return put(bucket, probe, new byte[] {(byte) what}, tag);
      } catch (Refused refused) {
        if (tried >= TRIES_MAX || !hasRested(refused.status)) {
          throw refused;
        }
      }
    }
  }

  // --- the rest of Hudi's interface -------------------------------------------------------------------------

  public Option readObject(String uri, boolean checkExistsFirst) {
    Long absent = (Long) ABSENT.get(uri);
    if (absent != null && System.nanoTime() - absent.longValue() < ABSENT_NS) {
      return Option.empty(); // whether each lock is to be audited, which nobody decides by the second
    }
    String[] place = placeOf(uri);
    try {
      Found found = get(place[0], place[1]);
      ABSENT.remove(uri);
      return Option.of(new String(found.content, StandardCharsets.UTF_8));
    } catch (Refused refused) {
      if (refused.status == NOT_FOUND) {
        ABSENT.put(uri, Long.valueOf(System.nanoTime()));
      }
      return Option.empty();
    }
  }

  public boolean writeObject(String uri, String content) {
    ABSENT.remove(uri);
    String[] place = placeOf(uri);
    try {
      putAnyway(place[0], place[1], content.getBytes(StandardCharsets.UTF_8));
      return true;
    } catch (Refused unwritten) {
      LOG.warn("{} could not be written: {}", uri, unwritten.getMessage());
      return false;
    }
  }

  /** The connections are the next one's. */
  public synchronized void close() {
    closed = true;
    letGo();
    OPEN.remove(owner);
  }

  /** Bucket and key: what stands there, where Hudi's own would take `%` for an escape. */
  private static String[] placeOf(String uri) {
    String[] parts = uri.substring(uri.indexOf("://") + 3).split("/", 2);
    return new String[] {parts[0], parts[1]};
  }
}
