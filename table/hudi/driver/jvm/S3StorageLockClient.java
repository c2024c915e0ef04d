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
import com.amazonaws.services.s3.model.SSEAwsKeyManagementParams;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.URI;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import lockstep.hudi.StorageLock;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.S3AEncryptionMethods;
import org.apache.hadoop.fs.s3a.S3AUtils;

/**
 * The table lock on S3, by the class name that Hudi gives to its scheme. It takes endpoint, region, credentials and
 * proxies from {@code fs.s3a.*}.
 */
public final class S3StorageLockClient extends StorageLock {
  /** By what tells them apart: Hudi makes a lock provider for each time that it locks, and closes it. */
  private static final Map CLIENTS = new ConcurrentHashMap();

  private final AmazonS3 s3;
  /** As Hadoop's connector puts: a bucket may refuse what does not say how it is to be encrypted. */
  private final S3AEncryptionMethods encryption;
  private final String kmsKey;

  /** As Hudi makes it, by its name. */
  public S3StorageLockClient(String ownerId, String lockFileUri, Properties properties) {
    super("s3a", ownerId, lockFileUri, properties);
    try {
      Configuration how = S3AUtils.propagateBucketOptions(settings, bucket);
      s3 = client(how, bucket, validity_s);
      encryption = S3AUtils.getEncryptionAlgorithm(bucket, how);
      kmsKey = S3AUtils.getS3EncryptionKey(bucket, how);
    } catch (IOException error) {
      throw new IllegalArgumentException(
          "the lock " + lockFileUri + " cannot be reached: " + error.getMessage(), error);
    }
  }

  protected Found get(String bucket, String key) {
    S3Object found = null;
    try {
      found = s3.getObject(bucket, key);
      String tag = found.getObjectMetadata().getETag();
      return new Found(found.getObjectContent().readNBytes(LOCK_BYTES_MAX), tag);
    } catch (SdkClientException error) {
      throw refused(error);
    } catch (IOException unread) {
      throw new Refused(0, false, unread.getMessage(), null);
    } finally {
      close(found);
    }
  }

  protected String put(String bucket, String key, byte[] content, String tag) {
    PutObjectRequest put = putting(bucket, key, content);
    if (tag == null) {
      put.putCustomRequestHeader("If-None-Match", "*");
    } else {
      put.putCustomRequestHeader("If-Match", tag);
    }
    try {
      return s3.putObject(put).getETag();
    } catch (SdkClientException error) {
      throw refused(error);
    }
  }

  protected void putAnyway(String bucket, String key, byte[] content) {
    try {
      s3.putObject(putting(bucket, key, content));
    } catch (SdkClientException error) {
      throw refused(error);
    }
  }

  private PutObjectRequest putting(String bucket, String key, byte[] content) {
    ObjectMetadata about = new ObjectMetadata();
    about.setContentLength(content.length);
    PutObjectRequest put = new PutObjectRequest(bucket, key, new ByteArrayInputStream(content), about);
    if (encryption == S3AEncryptionMethods.SSE_S3) {
      about.setSSEAlgorithm(ObjectMetadata.AES_256_SERVER_SIDE_ENCRYPTION);
    } else if (encryption == S3AEncryptionMethods.SSE_KMS) {
      boolean isNamed = kmsKey != null && !kmsKey.isEmpty();
      put.setSSEAwsKeyManagementParams(
          isNamed ? new SSEAwsKeyManagementParams(kmsKey) : new SSEAwsKeyManagementParams());
    }
    return put;
  }

  protected void delete(String bucket, String key) {
    s3.deleteObject(bucket, key);
  }

  protected String noTag() {
    return "\"00000000000000000000000000000000\"";
  }

  protected String[] conditions() {
    return new String[] {"If-None-Match", "If-Match"};
  }

  /** Without the numbers of request and host, which say nothing to a person. */
  private static Refused refused(SdkClientException error) {
    if (!(error instanceof AmazonS3Exception)) {
      return new Refused(0, false, error.getMessage(), error);
    }
    AmazonS3Exception answer = (AmazonS3Exception) error;
    String said = answer.getErrorCode() + ": " + answer.getErrorMessage();
    return new Refused(answer.getStatusCode(), "NoSuchBucket".equals(answer.getErrorCode()), said, error);
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
