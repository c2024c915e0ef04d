package org.apache.hudi.azure.transaction.lock;

import java.io.IOException;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import lockstep.hudi.AzureBlobs;
import lockstep.hudi.StorageLock;
import org.apache.hadoop.conf.Configuration;

/**
 * The table lock in Azure's storage, by the class name that Hudi gives to its scheme. Its tag is the blob's ETag; its
 * conditions are {@code If-Match}, and {@code If-None-Match: *} where nothing may be there.
 *
 * <p>It asks the Blob endpoint (AzureBlobs.java), where a put is one request: by the other, which Hadoop's connector
 * asks, a file is created empty first, and no condition goes with its content.
 */
public final class AzureStorageLockClient extends StorageLock {
  /** Of hosts -> how they are reached. */
  private static final Map KNOWN = new ConcurrentHashMap();

  private static Configuration knownBy;

  private final long timeout_ms;

  /** As Hudi makes it, by its name. */
  public AzureStorageLockClient(String ownerId, String lockFileUri, Properties properties) {
    super("abfss", ownerId, lockFileUri, properties);
    timeout_ms = validity_s * 1000 / REQUESTS_A_LEASE;
  }

  protected Found get(String bucket, String key) {
    AzureBlobs.Answer answer = done(blobs(bucket).get(container(bucket), key, timeout_ms));
    if (answer.content.length > LOCK_BYTES_MAX) {
      throw new Refused(0, false, "it has " + answer.content.length + " bytes, and is no lock", null);
    }
    return new Found(answer.content, answer.tag);
  }

  protected String put(String bucket, String key, byte[] content, String tag) {
    String wanted = tag == null ? "*" : tag;
    return done(blobs(bucket).put(container(bucket), key, content, wanted, null, timeout_ms)).tag;
  }

  protected void putAnyway(String bucket, String key, byte[] content) {
    done(blobs(bucket).put(container(bucket), key, content, null, null, timeout_ms));
  }

  protected void delete(String bucket, String key) {
    AzureBlobs.Answer answer = blobs(bucket).delete(container(bucket), key, timeout_ms);
    if (!answer.isDone() && answer.status != NOT_FOUND) {
      LOG.warn("abfss://{}/{} was not deleted: {}", new Object[] {bucket, key, answer.said});
    }
  }

  protected String noTag() {
    return "\"0x0\"";
  }

  protected String[] conditions() {
    return new String[] {"If-None-Match", "If-Match"};
  }

  private static AzureBlobs.Answer done(AzureBlobs.Answer answer) {
    if (answer.isDone()) {
      return answer;
    }
    throw new Refused(answer.status, "ContainerNotFound".equals(answer.code), answer.said, null);
  }

  private static String container(String bucket) {
    return AzureBlobs.parts(bucket)[0];
  }

  private static synchronized AzureBlobs blobs(String bucket) {
    if (knownBy != settings) { // credentials are made anew for others
      KNOWN.clear();
      knownBy = settings;
    }
    String host = AzureBlobs.parts(bucket)[1];
    AzureBlobs found = (AzureBlobs) KNOWN.get(host);
    try {
      if (found == null) {
        found = AzureBlobs.of(settings, host);
        KNOWN.put(host, found);
      }
      return found;
    } catch (IOException error) {
      throw new Refused(0, false, error.getMessage(), null);
    }
  }
}
