package org.apache.hadoop.fs.s3a;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * The markers of an instant, which are one listing, whatever the folders that they are in.
 *
 * <p>Hudi lists the folder of an instant, then each folder in it, and removes them one by one: five requests and more
 * for each table partition. What one listing of all has shown is good for the moments in which it does that. A marker
 * that comes later is of a worker that comes too late; it says nothing to anybody, and the sweep finds it.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
final class Markers {
  private static final String TEMPORARY = "/.hoodie/.temp/";
  private static final long GOOD_NS = TimeUnit.SECONDS.toNanos(2);

  /** Of an instant's folder -> what was in it. */
  private static final Map LISTED = new ConcurrentHashMap();

  /** Of whole paths -> files. */
  private final SortedMap files = new TreeMap();
  private final long at_ns = System.nanoTime();

  private Markers() {
  }

  /** The folder of an instant that this is, or is in; null where it is neither. */
  static Path folder(Path path) {
    String whole = path.toString();
    int at = whole.indexOf(TEMPORARY);
    if (at < 0) {
      return null;
    }
    int from = at + TEMPORARY.length();
    int end = whole.indexOf('/', from);
    return end == from || from == whole.length() ? null : new Path(end < 0 ? whole : whole.substring(0, end));
  }

  /** What a listing has just shown, which is of this folder alone; null where it was not listed of late. */
  static Markers of(Path folder) {
    Markers found = (Markers) LISTED.get(folder);
    if (found != null && System.nanoTime() - found.at_ns > GOOD_NS) {
      LISTED.remove(folder);
      return null;
    }
    return found;
  }

  /** `listed`: all files in the folder and below it. */
  static Markers learn(Path folder, List listed) {
    Markers made = new Markers();
    Iterator all = listed.iterator();
    while (all.hasNext()) {
      FileStatus one = (FileStatus) all.next();
      made.files.put(one.getPath().toString(), one);
    }
    Iterator old = LISTED.values().iterator();
    while (old.hasNext()) {
      if (made.at_ns - ((Markers) old.next()).at_ns > GOOD_NS) {
        old.remove();
      }
    }
    LISTED.put(folder, made);
    return made;
  }

  static void forget(Path path) {
    Path folder = folder(path);
    if (folder != null) {
      LISTED.remove(folder);
    }
  }

  /** The files and folders that are directly in it. */
  synchronized FileStatus[] in(Path path, String user) {
    Map found = new TreeMap();
    String within = path.toString() + "/";
    Iterator all = below(within).entrySet().iterator();
    while (all.hasNext()) {
      Map.Entry one = (Map.Entry) all.next();
      String rest = ((String) one.getKey()).substring(within.length());
      int end = rest.indexOf('/');
      Path folder = end < 0 ? null : new Path(within + rest.substring(0, end));
      found.put(end < 0 ? rest : rest.substring(0, end),
          folder == null ? one.getValue() : new S3AFileStatus(Tristate.FALSE, folder, user));
    }
    return (FileStatus[]) found.values().toArray(new FileStatus[found.size()]);
  }

  /** All files in it and below it, which are gone from now on. */
  synchronized List take(Path path) {
    SortedMap gone = below(path.toString() + "/");
    List taken = new ArrayList(gone.values());
    gone.clear();
    return taken;
  }

  /** All files in it and below it. */
  synchronized RemoteIterator below(Path path) {
    final Iterator found = new ArrayList(below(path.toString() + "/").values()).iterator();
    return new RemoteIterator() {
      public boolean hasNext() {
        return found.hasNext();
      }

      public Object next() {
        return found.next();
      }
    };
  }

  private SortedMap below(String within) {
    return files.subMap(within, within + Character.MAX_VALUE);
  }
}
