package lockstep.hudi;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.azurebfs.AbfsConfiguration;
import org.apache.hadoop.fs.azurebfs.oauth2.AccessTokenProvider;
import org.apache.hadoop.fs.azurebfs.services.AuthType;

/**
 * Single requests to the Blob endpoint of an Azure storage account, each sent once: whole blobs, on condition.
 *
 * <p>Hadoop's connector makes a file by three requests to the other endpoint (create, append, flush), between which an
 * empty file is seen. Put Blob is one, and whole or nothing. Account, key and tokens are those of the connector,
 * {@code fs.azure.*}; where the endpoint is says {@code fs.azure.lockstep.blob.root}, of the account.
 *
 * <p>By the JDK's own client, which repeats no put. Sources: Microsoft's REST reference, Put Blob, Get Blob, Delete Blob,
 * Authorize with Shared Key. Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics.
 */
public final class AzureBlobs {
  public static final String ROOT = "fs.azure.lockstep.blob.root";
  /** Which put a blob comes from; the name that Python gives it too. */
  public static final String MARK = "x-ms-meta-lockstepmark";
  public static final int CONFLICT = 409;
  public static final int PRECONDITION_FAILED = 412;

  private static final String KEY = "fs.azure.account.key";
  private static final String VERSION = "2021-08-06";
  private static final String MAC = "HmacSHA256";
  private static final String EXISTS = "BlobAlreadyExists";
  private static final String CODE = "x-ms-error-code";

  private static HttpClient client;

  private final String root;
  private final String account;
  private final byte[] key;
  private final AccessTokenProvider tokens;

  private AzureBlobs(String root, String account, byte[] key, AccessTokenProvider tokens) {
    this.root = root;
    this.account = account;
    this.key = key;
    this.tokens = tokens;
  }

  /** What was answered: never a refusal thrown. */
  public static final class Answer {
    /** 0 where none came. */
    public final int status;

    public final String tag;
    public final String mark;
    public final byte[] content;
    /** Azure's word for what is wrong. */
    public final String code;

    /** For people; nothing of the answer's body, which repeats what was signed. */
    public final String said;

    Answer(int status, String tag, String mark, byte[] content, String code, String said) {
      this.status = status;
      this.tag = tag;
      this.mark = mark;
      this.content = content;
      this.code = code;
      this.said = said;
    }

    public boolean isDone() {
      return status >= 200 && status < 300;
    }
  }

  /** Of the account of this host, {@code account.dfs.core.windows.net}. */
  public static AzureBlobs of(Configuration settings, String host) throws IOException {
    String root = settings.getTrimmed(ROOT + "." + host, "");
    int dot = host.indexOf('.');
    if (root.isEmpty() || dot < 0) {
      throw new IOException("nobody has said where the blobs of " + host + " are (" + ROOT + "." + host + ")");
    }
    AbfsConfiguration known;
    try {
      known = new AbfsConfiguration(settings, host);
    } catch (IllegalAccessException error) {
      throw new IOException("the settings of " + host + " cannot be read: " + error.getMessage());
    }
    String slashed = root.endsWith("/") ? root : root + "/";
    if (known.getAuthType(host) != AuthType.SharedKey) {
      return new AzureBlobs(slashed, host.substring(0, dot), null, known.getTokenProvider());
    }
    String said = known.getPasswordString(KEY);
    if (said == null) {
      throw new IOException("there is no key of the account " + host);
    }
    try {
      return new AzureBlobs(slashed, host.substring(0, dot), Base64.getDecoder().decode(said.trim()), null);
    } catch (IllegalArgumentException error) {
      throw new IOException("the key of the account " + host + " is no key: it is not in Base64");
    }
  }

  /** The container and the host of {@code container@host}. */
  public static String[] parts(String authority) {
    int at = authority.indexOf('@');
    return new String[] {authority.substring(0, at), authority.substring(at + 1)};
  }

  /** `tag`: of the blob that is replaced; `*`: of none, null: whatever is there. `mark` may be null. */
  public Answer put(String container, String path, byte[] content, String tag, String mark, long timeout_ms) {
    Map headers = new TreeMap();
    headers.put("x-ms-blob-type", "BlockBlob");
    headers.put("x-ms-blob-cache-control", "no-store");
    if (mark != null) {
      headers.put(MARK, mark);
    }
    if (tag != null) {
      headers.put("*".equals(tag) ? "If-None-Match" : "If-Match", tag);
    }
    return ask("PUT", container, path, headers, content, timeout_ms);
  }

  public Answer get(String container, String path, long timeout_ms) {
    return ask("GET", container, path, new TreeMap(), null, timeout_ms);
  }

  /** What is known of it, without its content. */
  public Answer look(String container, String path, long timeout_ms) {
    return ask("HEAD", container, path, new TreeMap(), null, timeout_ms);
  }

  public Answer delete(String container, String path, long timeout_ms) {
    return ask("DELETE", container, path, new TreeMap(), null, timeout_ms);
  }

  // --- one request ----------------------------------------------------------------------------------------

  private Answer ask(String method, String container, String path, Map headers, byte[] body, long timeout_ms) {
    URI address = URI.create(root + encoded(container) + "/" + encoded(path));
    HttpRequest.Builder asked = HttpRequest.newBuilder(address);
    asked.timeout(Duration.ofMillis(timeout_ms));
    headers.put("x-ms-version", VERSION);
    headers.put("x-ms-date", DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC)));
    try {
      asked.header("Authorization", authorization(method, address, headers, body == null ? 0 : body.length));
    } catch (IOException error) {
      return unanswered("no credentials could be had: " + error.getMessage());
    }
    for (Iterator each = headers.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry one = (Map.Entry) each.next();
      asked.header((String) one.getKey(), (String) one.getValue());
    }
    asked.method(
        method,
        body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body));
    CompletableFuture sent = client().sendAsync(asked.build(), HttpResponse.BodyHandlers.ofByteArray());
    try {
      return answered(method, container, (HttpResponse) sent.get(timeout_ms, TimeUnit.MILLISECONDS));
    } catch (ExecutionException error) {
      return unanswered("no answer: " + error.getCause());
    } catch (TimeoutException error) {
      sent.cancel(true);
      return unanswered("no answer in " + timeout_ms + " ms");
    } catch (InterruptedException error) {
      sent.cancel(true);
      Thread.currentThread().interrupt();
      return unanswered("interrupted");
    }
  }

  /** That a blob is there already is a condition that is not met, as it is for every other store. */
  private static Answer answered(String method, String container, HttpResponse answer) {
    int status = answer.statusCode();
    String code = header(answer, CODE).replaceAll("[^A-Za-z0-9]", "");
    boolean met = status != CONFLICT || !EXISTS.equals(code);
    // in the words of Hadoop's connector, which are understood (table/store/objects/errors_azure.py)
    String said = "Operation failed: \"" + status + " " + code + "\", " + status + ", " + method + ", " + container;
    return new Answer(
        met ? status : PRECONDITION_FAILED,
        header(answer, "ETag"),
        header(answer, MARK),
        (byte[]) answer.body(),
        code,
        code.isEmpty() ? said : said + ", " + code);
  }

  private static Answer unanswered(String why) {
    return new Answer(0, "", "", new byte[0], "", why);
  }

  private static String header(HttpResponse answer, String name) {
    return (String) answer.headers().firstValue(name).orElse("");
  }

  private static synchronized HttpClient client() {
    if (client == null) {
      client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    }
    return client;
  }

  // --- who asks -------------------------------------------------------------------------------------------

  private String authorization(String method, URI address, Map headers, int length) throws IOException {
    if (key == null) {
      return "Bearer " + tokens.getToken().getAccessToken();
    }
    String none = "";
    String[] first = {
      method, none, none, length == 0 ? none : Integer.toString(length), none, none, none, none,
      value(headers, "If-Match"), value(headers, "If-None-Match"), none, none
    };
    StringBuilder signed = new StringBuilder();
    for (int at = 0; at < first.length; at++) {
      signed.append(first[at]).append('\n');
    }
    for (Iterator each = headers.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry one = (Map.Entry) each.next();
      if (((String) one.getKey()).startsWith("x-ms-")) {
        signed.append(one.getKey()).append(':').append(one.getValue()).append('\n');
      }
    }
    signed.append('/').append(account).append(address.getRawPath());
    try {
      Mac mac = Mac.getInstance(MAC);
      mac.init(new SecretKeySpec(key, MAC));
      byte[] signature = mac.doFinal(signed.toString().getBytes(StandardCharsets.UTF_8));
      return "SharedKey " + account + ":" + Base64.getEncoder().encodeToString(signature);
    } catch (GeneralSecurityException error) {
      throw new IOException("the request cannot be signed: " + error.getMessage());
    }
  }

  private static String value(Map headers, String name) {
    return headers.containsKey(name) ? (String) headers.get(name) : "";
  }

  private static String encoded(String path) {
    return URLEncoder.encode(path, StandardCharsets.UTF_8).replace("+", "%20").replace("%2F", "/");
  }
}
