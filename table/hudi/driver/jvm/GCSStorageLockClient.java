package org.apache.hudi.gcp.transaction.lock;

import com.google.cloud.hadoop.repackaged.gcs.com.google.api.client.auth.oauth2.Credential;
import com.google.cloud.hadoop.repackaged.gcs.com.google.cloud.hadoop.util.CredentialFactory;
import com.google.cloud.hadoop.repackaged.gcs.com.google.cloud.hadoop.util.HadoopCredentialConfiguration;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import lockstep.hudi.StorageLock;
import org.apache.hadoop.conf.Configuration;

/**
 * The table lock in Google's storage, by the class name that Hudi gives to its scheme. Its tag is the object's
 * generation, and its condition {@code ifGenerationMatch}, 0 where nothing may be there.
 *
 * <p>Server and credentials are those of Hadoop's connector, {@code fs.gs.*}. It speaks the JSON API by the JDK's own
 * client, which repeats no post, where Google's libraries repeat what was not answered.
 */
public final class GCSStorageLockClient extends StorageLock {
  private static final String ROOT = "fs.gs.storage.root.url";
  private static final String ROOT_DEFAULT = "https://storage.googleapis.com/";
  private static final String GENERATION = "x-goog-generation";
  private static final String NO_BUCKET = "bucket does not exist";
  private static final int SAID_MAX = 200;

  /** An object is replaced once a second and no more often; a lock is taken and given back sooner than that. */
  private static final long PAUSE_MS = 1100;

  private static final long RENEWED_S = 120;

  private static HttpClient client;
  private static Configuration known;
  private static Credential credential;

  private final String root;
  private final long timeout_ms;

  /** As Hudi makes it, by its name. */
  public GCSStorageLockClient(String ownerId, String lockFileUri, Properties properties) {
    super("gs", ownerId, lockFileUri, properties);
    String said = settings.getTrimmed(ROOT, ROOT_DEFAULT);
    root = said.endsWith("/") ? said : said + "/";
    timeout_ms = validity_s * 1000 / REQUESTS_A_LEASE;
  }

  protected Found get(String bucket, String key) {
    HttpResponse answer = ask("GET", object(bucket, key) + "?alt=media", null, null);
    byte[] content = (byte[]) answer.body();
    if (content.length > LOCK_BYTES_MAX) {
      throw new Refused(0, false, "it has " + content.length + " bytes, and is no lock", null);
    }
    return new Found(content, (String) answer.headers().firstValue(GENERATION).orElse(""));
  }

  protected String put(String bucket, String key, byte[] content, String tag) {
    return generation(upload(bucket, key, content, "&ifGenerationMatch=" + (tag == null ? "0" : tag)));
  }

  protected void putAnyway(String bucket, String key, byte[] content) {
    upload(bucket, key, content, "");
  }

  protected void delete(String bucket, String key) {
    try {
      ask("DELETE", object(bucket, key), null, null);
    } catch (Refused refused) {
      if (refused.status != NOT_FOUND) {
        LOG.warn("gs://{}/{} was not deleted: {}", new Object[] {bucket, key, refused.getMessage()});
      }
    }
  }

  protected String noTag() {
    return "1";
  }

  protected String[] conditions() {
    return new String[] {"ifGenerationMatch=0", "ifGenerationMatch"};
  }

  protected long pause_ms(int status) {
    return status == TOO_MANY_REQUESTS ? PAUSE_MS : 0;
  }

  // --- requests -------------------------------------------------------------------------------------------

  /** With its own cache forbidden, which readers of a public bucket would be given. */
  private String upload(String bucket, String key, byte[] content, String condition) {
    String border = "lockstep-" + Long.toHexString(System.nanoTime());
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    String about = "{\"contentType\":\"application/json\",\"cacheControl\":\"no-store\"}";
    write(body, "--" + border + "\r\nContent-Type: application/json\r\n\r\n" + about + "\r\n");
    write(body, "--" + border + "\r\nContent-Type: application/json\r\n\r\n");
    body.write(content, 0, content.length);
    write(body, "\r\n--" + border + "--\r\n");
    String path = "upload/storage/v1/b/" + encoded(bucket) + "/o?uploadType=multipart&name=" + encoded(key);
    HttpResponse answer =
        ask("POST", path + condition, body.toByteArray(), "multipart/related; boundary=" + border);
    return new String((byte[]) answer.body(), StandardCharsets.UTF_8);
  }

  private HttpResponse ask(String method, String path, byte[] body, String kind) {
    HttpRequest.Builder asked = HttpRequest.newBuilder(URI.create(root + path));
    asked.timeout(Duration.ofMillis(timeout_ms));
    String token = token();
    if (!token.isEmpty()) {
      asked.header("Authorization", "Bearer " + token);
    }
    if (kind != null) {
      asked.header("Content-Type", kind);
    }
    asked.method(
        method,
        body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body));
    CompletableFuture sent = client().sendAsync(asked.build(), HttpResponse.BodyHandlers.ofByteArray());
    HttpResponse answer;
    try {
      answer = (HttpResponse) sent.get(timeout_ms, TimeUnit.MILLISECONDS);
    } catch (ExecutionException error) {
      throw new Refused(0, false, "no answer: " + error.getCause(), null);
    } catch (TimeoutException error) {
      sent.cancel(true);
      throw new Refused(0, false, "no answer in " + timeout_ms + " ms", null);
    } catch (InterruptedException error) {
      sent.cancel(true);
      Thread.currentThread().interrupt();
      throw new Refused(0, false, "interrupted", null);
    }
    int status = answer.statusCode();
    if (status < 300) {
      return answer;
    }
    String said = new String((byte[]) answer.body(), StandardCharsets.UTF_8).replaceAll("\\s+", " ").trim();
    boolean noBucket = status == NOT_FOUND && said.contains(NO_BUCKET);
    throw new Refused(
        status, noBucket, status + " " + said.substring(0, Math.min(SAID_MAX, said.length())), null);
  }

  private static synchronized HttpClient client() {
    if (client == null) {
      client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }
    return client;
  }

  /** Of the connector's credentials; empty where it is told to have none. */
  private static synchronized String token() {
    try {
      if (known != settings) {
        CredentialFactory factory =
            HadoopCredentialConfiguration.getCredentialFactory(settings, new String[] {"fs.gs"});
        credential = factory.getCredential(CredentialFactory.DEFAULT_SCOPES);
        known = settings;
      }
      if (credential == null) {
        return "";
      }
      Long left_s = credential.getExpiresInSeconds();
      boolean old = credential.getAccessToken() == null || left_s != null && left_s.longValue() < RENEWED_S;
      if (old && !credential.refreshToken()) {
        throw new Refused(0, false, "no credentials could be had, or renewed", null);
      }
      return credential.getAccessToken();
    } catch (IOException error) {
      throw new Refused(0, false, "no credentials could be had: " + error.getMessage(), null);
    } catch (GeneralSecurityException error) {
      throw new Refused(0, false, "no credentials could be had: " + error.getMessage(), null);
    }
  }

  private static String object(String bucket, String key) {
    return "storage/v1/b/" + encoded(bucket) + "/o/" + encoded(key);
  }

  private static String encoded(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  private static void write(ByteArrayOutputStream body, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    body.write(bytes, 0, bytes.length);
  }

  /** In what the server answers to an upload, which is JSON: {@code "generation": "123"}. */
  private static String generation(String json) {
    int at = json.indexOf("\"generation\"");
    int begin = at < 0 ? -1 : json.indexOf('"', json.indexOf(':', at)) + 1;
    String found = begin <= 0 ? "" : json.substring(begin, json.indexOf('"', begin));
    if (!found.matches("\\d+")) {
      throw new Refused(0, false, "the answer to a put names no generation", null);
    }
    return found;
  }
}
