package org.apache.hadoop.fs.s3a;

import com.amazonaws.auth.AWSCredentials;
import com.amazonaws.auth.AWSCredentialsProvider;
import com.amazonaws.auth.profile.ProfileCredentialsProvider;

/**
 * The keys of the profile that this JVM's property {@code aws.profile} names, as its file has them now.
 *
 * <p>The SDK's own provider, but for this: it looks once a second whether the file was changed, instead of once in five
 * minutes. Keys that were taken back would be refused until then, and commits with them.
 *
 * <p>Compiled when it is needed (table/hudi/driver/profile.py).
 */
public final class WatchedProfile implements AWSCredentialsProvider {
  private static final long LOOK_NS = 1000000000L;

  private final ProfileCredentialsProvider file = new ProfileCredentialsProvider();

  public WatchedProfile() {
    file.setRefreshIntervalNanos(LOOK_NS);
  }

  public AWSCredentials getCredentials() {
    return file.getCredentials();
  }

  public void refresh() {
    file.refresh();
  }
}
