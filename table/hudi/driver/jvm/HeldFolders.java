package org.apache.hadoop.fs.s3a;

import java.io.FileNotFoundException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * What is in the folders of Hudi's metadata table, as long as this JVM holds the lock of the table that it is of.
 *
 * <p>Nobody writes there without that lock. So what was listed once, and what was written and deleted here since, is
 * what is there: until the lock is taken anew, renewed or given back. A file whose writing or deleting has not ended
 * well is not known, and asked for.
 *
 * <p>Folders of the instants' markers are not among them (Markers.java), nor those of the table's files where executors,
 * who write them, are in JVMs of their own. Compiled when it is needed
 * (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
final class HeldFolders {
  static final String METADATA = "/.hoodie/metadata";

  private static final String HOODIE = "/.hoodie/";
  private static final String TEMPORARY = "/.temp/";

  /** Of the addresses of tables whose lock is held here -> another object with each time that it was taken. */
  private static volatile Map held = new HashMap();

  /** Whether folders with the metadata table's files are known as well, and not only those of its instants. */
  private static volatile boolean files;

  /** Of folders -> what is in them. */
  private static final Map KNOWN = new HashMap();

  private HeldFolders() {
  }

  static void heldBy(Map tables, boolean all) {
    held = tables;
    files = all;
  }

  /** What holds the lock of the table whose metadata table this is in; null where nothing does, or it is elsewhere. */
  static Object lock(Path path) {
    String whole = path.toString();
    int at = whole.indexOf(METADATA + "/");
    boolean known = at >= 0 && whole.indexOf(TEMPORARY, at) < 0 && (files || whole.indexOf(HOODIE, at + 1) > 0);
    return known ? held.get(whole.substring(0, at)) : null;
  }

  /** Null where it is not known. */
  static synchronized FileStatus[] list(Path folder) {
    Folder known = known(folder);
    if (known == null || !known.unsure.isEmpty()) {
      return null;
    }
    Collection files = known.files.values();
    return (FileStatus[]) files.toArray(new FileStatus[files.size()]);
  }

  /** `lock`: that which was held before the folder was listed. */
  static synchronized void learn(Path folder, Object lock, FileStatus[] listed) {
    if (lock == null || lock != lock(folder)) {
      return;
    }
    Folder known = new Folder(lock);
    for (int at = 0; at < listed.length; at++) {
      known.files.put(listed[at].getPath().getName(), listed[at]);
    }
    KNOWN.put(folder.toString(), known);
  }

  /** Null where it is not known. Raises where it is known that nothing is there. */
  static synchronized S3AFileStatus status(Path path) throws FileNotFoundException {
    Folder known = path.isRoot() ? null : known(path.getParent());
    String name = path.getName();
    if (known == null || known.unsure.contains(name)) {
      return null;
    }
    S3AFileStatus found = (S3AFileStatus) known.files.get(name);
    if (found == null) {
      throw new FileNotFoundException("Not there when its folder was listed under the table lock: " + path);
    }
    return found;
  }

  /** Whether something is known to be in it, or in a folder of it. */
  static synchronized boolean isFolder(Path path) {
    String within = path.toString() + "/";
    Iterator all = KNOWN.keySet().iterator();
    while (all.hasNext()) {
      String folder = (String) all.next();
      if ((folder + "/").startsWith(within)) {
        Folder known = known(new Path(folder));
        if (known != null && !known.files.isEmpty()) {
          return true;
        }
        if (known == null) {
          all.remove();
        }
      }
    }
    return false;
  }

  /** Somebody here is about to write or to delete it. */
  static synchronized void unsure(Path path) {
    Folder known = path.isRoot() ? null : known(path.getParent());
    if (known != null) {
      known.unsure.add(path.getName());
    }
  }

  static synchronized void written(S3AFileStatus file) {
    Path path = file.getPath();
    Folder known = path.isRoot() ? null : known(path.getParent());
    if (known != null) {
      known.files.put(path.getName(), file);
      known.unsure.remove(path.getName());
    }
  }

  static synchronized void deleted(Path path) {
    Folder known = path.isRoot() ? null : known(path.getParent());
    if (known != null) {
      known.files.remove(path.getName());
      known.unsure.remove(path.getName());
    }
  }

  /** Something happens to whole folders. */
  static synchronized void forget() {
    KNOWN.clear();
  }

  private static Folder known(Path folder) {
    Folder known = (Folder) KNOWN.get(folder.toString());
    return known == null || known.lock != lock(new Path(folder, "any")) ? null : known;
  }

  private static final class Folder {
    final Object lock;
    final Map files = new TreeMap();
    final Set unsure = new HashSet();

    Folder(Object lock) {
      this.lock = lock;
    }
  }
}
