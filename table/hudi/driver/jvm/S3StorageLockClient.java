package org.apache.hudi.aws.transaction.lock;

import com.amazonaws.ClientConfiguration;
import com.amazonaws.SdkClientException;
import com.amazonaws.auth.AWSCredentialsProvider;
import com.amazonaws.client.builder.AwsClientBuilder;
import com.amazonaws.services.s3.AmazonS3;
import com.amazonaws.services.s3.AmazonS3ClientBuilder;
import com.amazonaws.services.s3.model.AmazonS3Exception;
import com.amazonaws.services.s3.model.ObjectMetadata;
import com.amazonaws.services.s3.model.PutObjectRequest;
import com.amazonaws.services.s3.model.S3Object;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import lockstep.hudi.HeldLocks;
import lockstep.hudi.Processes;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AUtils;
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
 * The object that is Hudi's table lock on S3, read and written on condition.
 *
 * <p>Hudi's StorageBasedLockProvider looks for a class of this name, and has one in its module hudi-aws, which takes
 * no endpoint and counts a write without an answer as unknown. This one takes endpoint, region, credentials and
 * proxies from {@code fs.s3a.*}, as everything else of the table does; no request is repeated behind its back; and a
 * write without an answer is read, for the object says who wrote it last and until when it is his.
 *
 * <p>The object and its fields are Hudi's own, so that writers which have Hudi's class share the lock. Of the owner
 * this one says more than a random word: which process it is, so that whoever shares its machine can tell that it is
 * dead, and does not wait for the lease.
 *
 * <p>Compiled when it is needed, by the compiler that Spark brings (table/hudi/driver/lock_client.py): Java as it was
 * before generics, as far as that compiler sees, and no lambdas.
 */
public final class S3StorageLockClient implements StorageLockClient {
  private static final Logger LOG = LoggerFactory.getLogger(S3StorageLockClient.class);
  private static final String VALIDITY = "hoodie.write.lock.storage.validity.timeout.secs";
  private static final long VALIDITY_S = 300;
  private static final int REQUESTS_A_LEASE = 5;
  private static final int LOCK_BYTES_MAX = 64 * 1024;
  private static final int TRIES_MAX = 3;
  private static final int NOT_FOUND = 404;
  private static final int CONFLICT = 409;
  private static final int PRECONDITION_FAILED = 412;
  private static final int TOO_MANY_REQUESTS = 429;
  private static final int SERVER_ERROR = 500;
  private static final int UNAVAILABLE = 503;

  /** Hadoop's settings, for which the lock provider has no place. */
  private static volatile Configuration settings = new Configuration();

  /** By what tells them apart: Hudi makes a lock provider for each time that it locks, and closes it. */
  private static final Map CLIENTS = new ConcurrentHashMap();

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

  private final AmazonS3 s3;
  private final String owner;
  private final String bucket;
  private final String key;
  private final long validity_ms;
  private int shown = HeldLocks.NONE;
  /** What is to be replaced was not read: of a taking alone. */
  private boolean guessed;

  private Object mine = new Object();
  private boolean closed;

  /** As Hudi makes it, by its name. */
  public S3StorageLockClient(String ownerId, String lockFileUri, Properties properties) {
    String[] place = placeOf(lockFileUri);
    owner = ownerId;
    bucket = place[0];
    key = place[1];
    Object validity = properties.get(VALIDITY);
    long validity_s = validity == null ? VALIDITY_S : Long.parseLong(validity.toString().trim());
    validity_ms = 1000 * validity_s;
    try {
      s3 = client(S3AUtils.propagateBucketOptions(settings, bucket), bucket, validity_s);
    } catch (IOException error) {
      throw new IllegalArgumentException(
          "the lock " + lockFileUri + " cannot be reached: " + error.getMessage(), error);
    }
    OPEN.put(owner, Boolean.TRUE);
  }

  /** How S3 is reached by those that are made from now on. */
  public static void configure(Configuration how) {
    settings = how;
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
      settle();
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
    return "s3a://" + bucket + "/" + (end < 0 ? key : key.substring(0, end));
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
      String why;
      try {
        String tag = put(key, content(wanted), before == null ? null : before.getVersionId());
        return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(wanted, tag)));
      } catch (AmazonS3Exception refused) {
        status = refused.getStatusCode();
        why = said(refused);
        if (!mayPass(status) && status != PRECONDITION_FAILED && status != NOT_FOUND) {
          throw refused;
        }
      } catch (SdkClientException unanswered) {
        why = unanswered.getMessage();
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
    S3Object found = null;
    try {
      found = s3.getObject(bucket, key);
      InputStream content = found.getObjectContent();
      String tag = found.getObjectMetadata().getETag();
      return Pair.of(LockGetResult.SUCCESS, Option.of(StorageLockFile.createFromStream(content, tag)));
    } catch (AmazonS3Exception refused) {
      if (refused.getStatusCode() == NOT_FOUND && !"NoSuchBucket".equals(refused.getErrorCode())) {
        return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      }
      if (!mayPass(refused.getStatusCode())) {
        throw refused;
      }
      LOG.warn("lock {} cannot be read: {}", place(), said(refused));
    } catch (SdkClientException unanswered) {
      LOG.warn("lock {} cannot be read: {}", place(), unanswered.getMessage());
    } finally {
      close(found);
    }
    return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
  }

  /** Its tag. `tag`: of the object that is replaced, null where none may be there. */
  private String put(String at, byte[] content, String tag) {
    ObjectMetadata about = new ObjectMetadata();
    about.setContentLength(content.length);
    PutObjectRequest put = new PutObjectRequest(bucket, at, new ByteArrayInputStream(content), about);
    if (tag == null) {
      put.putCustomRequestHeader("If-None-Match", "*");
    } else {
      put.putCustomRequestHeader("If-Match", tag);
    }
    return s3.putObject(put).getETag();
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

  /** Without the numbers of request and host, which say nothing to a person. */
  private static String said(AmazonS3Exception refused) {
    return refused.getErrorCode() + ": " + refused.getErrorMessage();
  }

  private String place() {
    return "s3a://" + bucket + "/" + key;
  }

  // --- holders --------------------------------------------------------------------------------------------

  private static void settle() {
    try {
      Thread.sleep(SETTLED_MS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
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
      String tag = put(probe, new byte[] {'1'}, null);
      if (!refuses(probe, null)) {
        return "If-None-Match";
      }
      if (!refuses(probe, "\"00000000000000000000000000000000\"")) {
        return "If-Match";
      }
      put(probe, new byte[] {'2'}, tag);
      return refuses(probe, tag) ? "" : "If-Match";
    } finally {
      s3.deleteObject(bucket, probe);
    }
  }

  private boolean refuses(String probe, String tag) {
    try {
      put(probe, new byte[] {'3'}, tag);
      return false;
    } catch (AmazonS3Exception refused) {
      int status = refused.getStatusCode();
      if (status == PRECONDITION_FAILED || status == CONFLICT) {
        return true;
      }
      throw refused;
    }
  }

  // --- the rest of Hudi's interface -------------------------------------------------------------------------

  public Option readObject(String uri, boolean checkExistsFirst) {
    Long absent = (Long) ABSENT.get(uri);
    if (absent != null && System.nanoTime() - absent.longValue() < ABSENT_NS) {
      return Option.empty(); // whether each lock is to be audited, which nobody decides by the second
    }
    String[] place = placeOf(uri);
    S3Object found = null;
    try {
      found = s3.getObject(place[0], place[1]);
      ABSENT.remove(uri);
      byte[] content = found.getObjectContent().readNBytes(LOCK_BYTES_MAX);
      return Option.of(new String(content, StandardCharsets.UTF_8));
    } catch (AmazonS3Exception refused) {
      if (refused.getStatusCode() == NOT_FOUND) {
        ABSENT.put(uri, Long.valueOf(System.nanoTime()));
      }
      return Option.empty();
    } catch (SdkClientException unread) {
      return Option.empty();
    } catch (IOException unread) {
      return Option.empty();
    } finally {
      close(found);
    }
  }

  public boolean writeObject(String uri, String content) {
    ABSENT.remove(uri);
    String[] place = placeOf(uri);
    try {
      s3.putObject(place[0], place[1], content);
      return true;
    } catch (SdkClientException unwritten) {
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

  private static void close(S3Object object) {
    try {
      if (object != null) {
        object.close();
      }
    } catch (IOException error) {
      LOG.debug("a connection was not given back", error);
    }
  }

  /** Bucket and key: what stands there, where Hudi's own would take `%` for an escape. */
  private static String[] placeOf(String uri) {
    String[] parts = uri.substring(uri.indexOf("://") + 3).split("/", 2);
    return new String[] {parts[0], parts[1]};
  }

  private static AmazonS3 client(Configuration how, String bucket, long validity_s) throws IOException {
    String endpoint = how.getTrimmed(Constants.ENDPOINT, "");
    String region = how.getTrimmed(Constants.AWS_REGION, "");
    boolean pathStyle = how.getBoolean(Constants.PATH_STYLE_ACCESS, false);
    String called = bucket + " " + endpoint + " " + region + " " + pathStyle + " " + validity_s;
    synchronized (CLIENTS) {
      AmazonS3 made = (AmazonS3) CLIENTS.get(called);
      if (made == null) {
        made = newClient(how, bucket, (int) (validity_s * 1000 / REQUESTS_A_LEASE), endpoint, region, pathStyle);
        CLIENTS.put(called, made);
      }
      return made;
    }
  }

  private static AmazonS3 newClient(
      Configuration how, String bucket, int timeout_ms, String endpoint, String region, boolean pathStyle)
      throws IOException {
    ClientConfiguration client = S3AUtils.createAwsConf(how, bucket, Constants.AWS_SERVICE_IDENTIFIER_S3);
    client.setMaxErrorRetry(0); // one that is repeated meets its own first try, and takes it for somebody's
    client.setUseExpectContinue(false); // a lock is a hundred bytes
    client.setRequestTimeout(timeout_ms);
    client.setClientExecutionTimeout(timeout_ms);
    String providers = how.getTrimmed("fs.s3a.security.credential.provider.path", "");
    if (!providers.isEmpty()) { // as the connector does
      how.set("hadoop.security.credential.provider.path", providers);
    }
    AWSCredentialsProvider who = S3AUtils.createAWSCredentialProviderSet(URI.create("s3a://" + bucket), how);
    AmazonS3ClientBuilder builder = AmazonS3ClientBuilder.standard();
    builder.setClientConfiguration(client);
    builder.setCredentials(who);
    builder.setPathStyleAccessEnabled(Boolean.valueOf(pathStyle));
    builder.setChunkedEncodingDisabled(Boolean.TRUE);
    if (!endpoint.isEmpty()) {
      String signed = region.isEmpty() ? "us-east-1" : region;
      builder.setEndpointConfiguration(new AwsClientBuilder.EndpointConfiguration(endpoint, signed));
    } else if (region.isEmpty()) {
      builder.setForceGlobalBucketAccessEnabled(Boolean.TRUE);
      builder.setRegion("us-east-1");
    } else {
      builder.setRegion(region);
    }
    return (AmazonS3) builder.build();
  }
}
