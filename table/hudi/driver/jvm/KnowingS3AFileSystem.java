package org.apache.hadoop.fs.s3a;

import com.amazonaws.services.s3.model.DeleteObjectsRequest.KeyVersion;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.s3a.impl.StatusProbeEnum;
import org.apache.hadoop.fs.s3a.s3guard.BulkOperationState;
import org.apache.hadoop.util.Progressable;

/**
 * Hadoop's connector, of whose open files only so many keep a connection (Connections.java), and which does not ask what
 * it knows. Of the driver's JVM.
 *
 * <p>Most of what a commit asks of the store asks for nothing that is not known. Hadoop's looks for a file and for a
 * folder of each name: here names of Hudi's own below .hoodie, by which it knows which of the two they are, are looked
 * for as that. Where something was removed it looks whether the folder is still to be seen; of folders that Hudi makes
 * for each instant nobody wants to know. Hudi reads the table's properties a dozen times a commit: what was read is good
 * for ten seconds, unless the table lock was taken since, or they were written; a completed instant for good. It looks
 * whether a file is there, makes it, and Hadoop looks again. It lists the metadata table's folders over and over, in which nobody else writes as long
 * as the lock is held (HeldFolders.java), and markers one by one (Markers.java).
 *
 * <p>In Hadoop's own package, for what it opens to nobody else. Compiled when it is needed
 * (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class KnowingS3AFileSystem extends S3AFileSystem {
  private static final String HOODIE = "/.hoodie/";
  private static final String PROPERTIES = HOODIE + "hoodie.properties";
  private static final String TEMPORARY = HOODIE + ".temp/";
  private static final String HEARTBEATS = HOODIE + ".heartbeat/";
  private static final String TIMELINE = "/timeline/";
  private static final String HISTORY = "/timeline/history/";
  private static final Pattern COMPLETED = Pattern.compile("[0-9]{17}_[0-9]{17}\\.[a-z]+");
  private static final String MARKER = ".marker.";
  private static final String MARKERS = "MARKERS";
  private static final String LOG = ".log.";
  private static final int KEPT_BYTES_MAX = 1 << 20;
  private static final int COMPLETED_MAX = 8;
  private static final long KNOWN_NS = TimeUnit.SECONDS.toNanos(10);
  private static final long MISSED_NS = TimeUnit.SECONDS.toNanos(1);
  private static final int DELETED_AT_ONCE = 250; // as Hadoop's does
  private static final long CHANGING_NS = TimeUnit.MINUTES.toNanos(2);

  /** Holds another object whenever the table lock was taken here; null where nobody says so: then nothing is kept. */
  private static volatile AtomicReference taken;

  /** The file that this thread makes, of which it was just said that it is not there. */
  private static final ThreadLocal MAKING = new ThreadLocal();

  /** The file that this thread was last told is not there, and when. */
  private static final ThreadLocal MISSED = new ThreadLocal();

  private final Connections connections = new Connections();

  /** Of properties' paths -> what was read. */
  private final Map known = new ConcurrentHashMap();

  /** Of paths of completed instants -> what was read: the last ones. */
  private final Map completed = new LinkedHashMap() {
    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > COMPLETED_MAX;
    }
  };

  private volatile long changed_ns = System.nanoTime() - CHANGING_NS;

  /** Properties are read anew whenever this holds another object. */
  public static void readAnewAfter(AtomicReference change) {
    taken = change;
  }

  /** Of the tables whose lock is held here, by address, another object with each time that it was taken. `all`: whether
   * executors are in this JVM. */
  public static void heldBy(Map tables, boolean all) {
    HeldFolders.heldBy(tables, all);
  }

  // --- what is known --------------------------------------------------------------------------------------

  /** As Hadoop's, which looks for a file, for a folder, or for both. */
  S3AFileStatus innerGetFileStatus(Path path, boolean needEmptyDirectoryFlag, Set probes) throws IOException {
    if (needEmptyDirectoryFlag) {
      return super.innerGetFileStatus(path, true, probes);
    }
    Path whole = makeQualified(path);
    S3AFileStatus known = HeldFolders.status(whole);
    if (known == null && (isFolderOfHudis(whole) || HeldFolders.isFolder(whole))) {
      known = new S3AFileStatus(Tristate.UNKNOWN, whole, getUsername()); // a part of names: there is none to look for
    }
    if (known != null) {
      return known;
    }
    if (whole.equals(MAKING.get()) && (wasMissed(whole) || isCompleted(whole))) {
      throw new FileNotFoundException("Not there, as far as is known: " + path);
    }
    try {
      return super.innerGetFileStatus(path, false, wanted(path, probes));
    } catch (FileNotFoundException missed) {
      if (isFileOfHudis(whole)) {
        MISSED.set(new Object[] {whole, Long.valueOf(System.nanoTime())});
      }
      throw missed;
    }
  }

  /** Of an instant that is complete, or about to be: its name has a time that nobody else has, and it never changes. */
  private static boolean isCompleted(Path path) {
    return folder(path).endsWith(TIMELINE) && COMPLETED.matcher(path.getName()).matches();
  }

  private static boolean wasMissed(Path path) {
    Object[] missed = (Object[]) MISSED.get();
    return missed != null && path.equals(missed[0])
        && System.nanoTime() - ((Long) missed[1]).longValue() < MISSED_NS;
  }

  public FileStatus[] listStatus(Path path) throws FileNotFoundException, IOException {
    Path whole = makeQualified(path);
    Path markers = Markers.folder(whole);
    if (markers != null) {
      Markers listed = whole.equals(markers) ? null : Markers.of(markers);
      return (listed == null ? markers(markers) : listed).in(whole, getUsername());
    }
    FileStatus[] known = HeldFolders.list(whole);
    if (known != null) {
      return known;
    }
    long state = HeldFolders.state(whole);
    FileStatus[] listed = super.listStatus(path);
    HeldFolders.learn(whole, state, listed);
    return listed;
  }

  public RemoteIterator listFiles(Path path, boolean recursive) throws FileNotFoundException, IOException {
    Path whole = makeQualified(path);
    Path folder = Markers.folder(whole);
    Markers listed = folder == null || folder.equals(whole) ? null : Markers.of(folder);
    return listed == null || !recursive ? super.listFiles(path, recursive) : listed.below(whole);
  }

  /** All of an instant. */
  private Markers markers(Path folder) throws IOException {
    List found = new ArrayList();
    try {
      RemoteIterator all = super.listFiles(folder, true);
      while (all.hasNext()) {
        found.add(all.next());
      }
    } catch (FileNotFoundException none) {
      found.clear();
    }
    return Markers.learn(folder, found);
  }

  /** A folder of markers, or one in it, with all that is known to be there. */
  private boolean deleteMarkers(Path path, Path folder) throws IOException {
    Markers listed = Markers.of(folder);
    List gone = (listed == null ? markers(folder) : listed).take(path);
    for (int from = 0; from < gone.size(); from += DELETED_AT_ONCE) {
      List keys = new ArrayList();
      for (int at = from; at < Math.min(gone.size(), from + DELETED_AT_ONCE); at++) {
        keys.add(new KeyVersion(pathToKey(((FileStatus) gone.get(at)).getPath())));
      }
      try {
        removeKeys(keys, false, null);
      } catch (com.amazonaws.AmazonClientException error) {
        throw S3AUtils.translateException("delete", path, error);
      }
    }
    return true; // Hudi, which was told that it is there, takes anything else for a failure
  }

  /** Hudi archives by removing three files of each instant. */
  private boolean deleteFile(Path path) throws IOException {
    try {
      innerGetFileStatus(path, false, StatusProbeEnum.HEAD_ONLY);
    } catch (FileNotFoundException gone) {
      return false;
    }
    Markers.forget(path);
    HeldFolders.unsure(path);
    try {
      deleteObject(pathToKey(path));
    } catch (com.amazonaws.AmazonClientException error) {
      throw S3AUtils.translateException("delete", path, error);
    }
    HeldFolders.deleted(path);
    maybeCreateFakeParentDirectory(path);
    return true;
  }

  /** Hadoop calls it when a file is there. */
  void finishedWrite(String key, long bytes, String tag, String version, BulkOperationState state)
      throws MetadataPersistenceException {
    super.finishedWrite(key, bytes, tag, version, state);
    Path path = keyToQualifiedPath(key);
    if (areProperties(path)) { // they have been changed
      known.clear();
      changed_ns = System.nanoTime() - CHANGING_NS;
    }
    if (HeldFolders.lock(path) != null) {
      long now_ms = System.currentTimeMillis();
      HeldFolders.written(
          new S3AFileStatus(bytes, now_ms, path, getDefaultBlockSize(path), getUsername(), tag, version));
    }
  }

  private static Set wanted(Path path, Set probes) throws FileNotFoundException {
    StatusProbeEnum needless = isFileOfHudis(path) ? StatusProbeEnum.List : null;
    needless = isFolderOfHudis(path) ? StatusProbeEnum.Head : needless;
    if (needless == null || !probes.contains(needless)) {
      return probes;
    }
    Set left = EnumSet.copyOf(probes);
    left.remove(needless);
    if (left.isEmpty()) {
      throw new FileNotFoundException("Not asked, since Hudi makes nothing of that kind there: " + path);
    }
    return left;
  }

  /** Instants, also archived ones, heartbeats, markers, log files of the metadata table. */
  private static boolean isFileOfHudis(Path path) {
    String whole = path.toUri().getPath();
    String name = path.getName();
    if (!whole.contains(HOODIE) || name.isEmpty()) {
      return false;
    }
    String folder = folder(path);
    if (folder.endsWith(HISTORY) || folder.endsWith(HEARTBEATS)) {
      return true;
    }
    boolean dated = Character.isDigit(name.charAt(0)) && name.indexOf('.') > 0;
    return folder.endsWith(TIMELINE) && dated || name.contains(MARKER) || name.charAt(0) == '.' && name.contains(LOG);
  }

  private static String folder(Path path) {
    return path.getParent().toString() + "/";
  }

  /** Of the markers of an instant; a table partition's, below it, may have any name but that of a marker, or of the
   * files in which others keep theirs together. */
  private static boolean isFolderOfHudis(Path path) {
    String name = path.getName();
    return path.toUri().getPath().contains(TEMPORARY) && !name.contains(MARKER) && !name.startsWith(MARKERS);
  }

  protected void maybeCreateFakeParentDirectory(Path path) throws IOException {
    String whole = path.toUri().getPath();
    boolean kept = whole.contains(HOODIE) && getDirectoryMarkerPolicy().keepDirectoryMarkers(path);
    if (!kept && !whole.contains(TEMPORARY) && !whole.contains(HEARTBEATS)) {
      super.maybeCreateFakeParentDirectory(path);
    }
  }

  // --- properties -----------------------------------------------------------------------------------------

  private static boolean areProperties(Path path) {
    return path.toUri().getPath().endsWith(PROPERTIES);
  }

  private FSDataInputStream properties(Path path, int bufferBytes) throws IOException {
    AtomicReference change = taken;
    if (change == null) {
      return null;
    }
    Object since = change.get();
    if (System.nanoTime() - changed_ns < CHANGING_NS) {
      return null;
    }
    Known before = (Known) known.get(path);
    if (before == null || before.since != since || System.nanoTime() - before.at_ns > KNOWN_NS) {
      before = new Known(since, System.nanoTime(), whole(path, bufferBytes));
      known.put(path, before);
    }
    return before.content == null ? null : new FSDataInputStream(new Content(before.content));
  }

  /** Read once: who begins a transaction reads the last commit, and who looks for it has. Null where it is large. */
  private FSDataInputStream completed(Path path, int bufferBytes) throws IOException {
    byte[] content;
    boolean read;
    synchronized (completed) {
      content = (byte[]) completed.get(path);
      read = completed.containsKey(path);
    }
    if (!read) {
      content = whole(path, bufferBytes);
      synchronized (completed) {
        completed.put(path, content);
      }
    }
    return content == null ? null : new FSDataInputStream(new Content(content));
  }

  /** Null where it is more than is kept. */
  private byte[] whole(Path path, int bufferBytes) throws IOException {
    FSDataInputStream file = super.open(path, bufferBytes);
    try {
      byte[] content = file.readNBytes(KEPT_BYTES_MAX + 1);
      return content.length > KEPT_BYTES_MAX ? null : content;
    } finally {
      file.close();
    }
  }

  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferBytes,
      short replication,
      long blockBytes,
      Progressable progress)
      throws IOException {
    if (areProperties(path)) {
      forget();
    }
    Path whole = makeQualified(path);
    Markers.forget(whole);
    try {
      MAKING.set(whole);
      return super.create(path, permission, overwrite, bufferBytes, replication, blockBytes, progress);
    } finally {
      MAKING.remove();
      MISSED.remove();
      HeldFolders.unsure(whole);
    }
  }

  public boolean mkdirs(Path path, FsPermission permission) throws IOException, FileAlreadyExistsException {
    if (HeldFolders.lock(makeQualified(path)) != null) {
      HeldFolders.forget();
    }
    return super.mkdirs(path, permission);
  }

  public boolean rename(Path from, Path to) throws IOException {
    forget();
    HeldFolders.forget();
    return super.rename(from, to);
  }

  public boolean delete(Path path, boolean recursive) throws IOException {
    Path whole = makeQualified(path);
    Path markers = Markers.folder(whole);
    if (markers != null && recursive && isFolderOfHudis(whole)) {
      return deleteMarkers(whole, markers);
    }
    if (!recursive && isFileOfHudis(whole)) {
      return deleteFile(whole);
    }
    if (areProperties(path) || recursive && !path.toUri().getPath().contains(HOODIE)) {
      forget();
    }
    Markers.forget(whole);
    HeldFolders.unsure(whole);
    if (recursive) {
      HeldFolders.forget();
    }
    return super.delete(path, recursive);
  }

  /** Somebody here begins to change properties: until that must be over, each look is at what is there. */
  private void forget() {
    changed_ns = System.nanoTime();
    known.clear();
  }

  private static final class Known {
    final Object since;
    final long at_ns;
    final byte[] content;

    Known(Object since, long at_ns, byte[] content) {
      this.since = since;
      this.at_ns = at_ns;
      this.content = content;
    }
  }

  // --- connections ----------------------------------------------------------------------------------------

  public FSDataInputStream open(Path path, int bufferBytes) throws IOException {
    FSDataInputStream kept = areProperties(path) ? properties(path, bufferBytes) : null;
    kept = kept == null && isCompleted(path) ? completed(path, bufferBytes) : kept;
    return kept != null ? kept : connections.sparing(super.open(path, bufferBytes), getConf());
  }

  public CompletableFuture openFileWithOptions(Path path, OpenFileParameters parameters) throws IOException {
    return connections.sparing(super.openFileWithOptions(path, parameters), getConf());
  }

  /** How many files keep a connection now. */
  public int reading() {
    return connections.reading();
  }
}
