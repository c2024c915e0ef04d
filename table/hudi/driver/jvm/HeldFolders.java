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

  /** No folder has had it twice. */
  private static long states;

  private static final long NONE = 0;

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
    if (known == null || known.files == null || !known.unsure.isEmpty()) {
      return null;
    }
    Collection files = known.files.values();
    return (FileStatus[]) files.toArray(new FileStatus[files.size()]);
  }

  /** Which of its states the folder is in, as far as it changes here: asked before it is listed. */
  static synchronized long state(Path folder) {
    Folder now = held(folder);
    return now == null ? NONE : now.state;
  }

  /** `state`: before it was listed. What changed meanwhile, whoever did it, may not be in the list, and spoils it. */
  static synchronized void learn(Path folder, long state, FileStatus[] listed) {
    Folder known = known(folder);
    if (known == null || known.state != state) {
      return;
    }
    known.files = new TreeMap();
    for (int at = 0; at < listed.length; at++) {
      known.files.put(listed[at].getPath().getName(), listed[at]);
    }
  }

  /** Null where it is not known. Raises where it is known that nothing is there. */
  static synchronized S3AFileStatus status(Path path) throws FileNotFoundException {
    Folder known = path.isRoot() ? null : known(path.getParent());
    String name = path.getName();
    if (known == null || known.files == null || known.unsure.contains(name)) {
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
        if (known == null) {
          all.remove();
        } else if (known.files != null && !known.files.isEmpty()) {
          return true;
        }
      }
    }
    return false;
  }

  /** Somebody here is about to write or to delete it. */
  static synchronized void unsure(Path path) {
    Folder now = changed(path);
    if (now != null) {
      now.unsure.add(path.getName());
    }
  }

  static synchronized void written(S3AFileStatus file) {
    Path path = file.getPath();
    Folder now = changed(path);
    if (now != null) {
      now.unsure.remove(path.getName());
      if (now.files != null) {
        now.files.put(path.getName(), file);
      }
    }
  }

  static synchronized void deleted(Path path) {
    Folder now = changed(path);
    if (now != null) {
      now.unsure.remove(path.getName());
      if (now.files != null) {
        now.files.remove(path.getName());
      }
    }
  }

  /** Something happens to whole folders. */
  static synchronized void forget() {
    KNOWN.clear();
  }

  /** The folder of a file that changes, also one that was never listed; null where the lock is not held. Folders that it
   * is in may come to be by it, or go. */
  private static Folder changed(Path path) {
    Folder now = path.isRoot() ? null : held(path.getParent());
    if (now == null) {
      return null;
    }
    now.state = ++states;
    for (Path at = path.getParent(); lock(at) != null; at = at.getParent()) {
      Folder above = known(at.getParent());
      if (above != null && above.files != null && !above.files.containsKey(at.getName())) {
        above.files = null;
        above.state = ++states;
      }
    }
    return now;
  }

  private static Folder known(Path folder) {
    Folder known = (Folder) KNOWN.get(folder.toString());
    return known == null || known.lock != lock(new Path(folder, "any")) ? null : known;
  }

  /** As `known`, made where it is not; null where the lock is not held. */
  private static Folder held(Path folder) {
    Folder known = known(folder);
    Object lock = lock(new Path(folder, "any"));
    if (known == null && lock != null) {
      known = new Folder(lock, ++states);
      KNOWN.put(folder.toString(), known);
    }
    return known;
  }

  /** `files`: null where it was not listed. */
  private static final class Folder {
    final Object lock;
    final Set unsure = new HashSet();
    long state;
    Map files;

    Folder(Object lock, long state) {
      this.lock = lock;
      this.state = state;
    }
  }
}
