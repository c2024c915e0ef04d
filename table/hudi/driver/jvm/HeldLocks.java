package lockstep.hudi;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Which table locks this JVM holds, for its guardian, on a page of memory that both have.
 *
 * <p>Hudi takes the lock where it likes: to plan, to clean, to archive, to end a rollback. Whoever is told of it by
 * Python hears of those only that Python knows of; here the classes that take it say so themselves. Writing to the page
 * asks nobody, and cannot fail or wait.
 *
 * <p>The page's form: table/hudi/driver/held.py. Compiled when it is needed (table/hudi/driver/compiled.py).
 */
public final class HeldLocks {
  /** Of a lock that nobody looks after. */
  public static final int NONE = -1;

  private static final int SLOTS = 64;
  private static final int SLOT_BYTES = 16;
  private static final int LIVES = 8;

  private static ByteBuffer page;
  private static String shown = "";

  private HeldLocks() {
  }

  /** Show what is held from here on in this file, which is as long as a page. */
  public static synchronized void show(String path) throws IOException {
    if (path.equals(shown)) {
      return;
    }
    RandomAccessFile file = new RandomAccessFile(path, "rw");
    try {
      ByteBuffer mapped = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, SLOTS * SLOT_BYTES);
      page = mapped.order(ByteOrder.nativeOrder());
      for (int slot = 0; slot < SLOTS; slot++) { // of a JVM that was here before
        page.putLong(slot * SLOT_BYTES + LIVES, 0);
      }
      shown = path;
    } finally {
      file.close();
    }
  }

  /** To be said before the lock is asked for, which may be had from then on: where it stands on the page.
   *
   * @param lives_ms how long it lives that nobody renews; 0: for ever */
  public static synchronized int hold(long lives_ms) {
    if (page == null || lives_ms <= 0) {
      return NONE;
    }
    for (int slot = 0; slot < SLOTS; slot++) {
      int at = slot * SLOT_BYTES;
      if (page.getLong(at + LIVES) == 0) {
        page.putLong(at, up_ms());
        page.putLong(at + LIVES, lives_ms);
        return slot;
      }
    }
    throw new IllegalStateException("this process holds " + SLOTS + " table locks already: no guardian sees another");
  }

  /** It was renewed by what was sent at that time. */
  public static synchronized void renew(int slot, long since_ms) {
    if (slot != NONE) {
      page.putLong(slot * SLOT_BYTES, since_ms);
    }
  }

  /** Not before it was given back, where that would take it from whoever has it by then. */
  public static synchronized void release(int slot) {
    if (slot != NONE) {
      page.putLong(slot * SLOT_BYTES + LIVES, 0);
    }
  }

  public static long up_ms() {
    return (long) (1000 * up_s());
  }

  /** Since the machine was started; a suspended one goes on, as no clock of Java's does. */
  public static double up_s() {
    try {
      String up = new String(Files.readAllBytes(Paths.get("/proc/uptime", new String[0])), StandardCharsets.US_ASCII);
      return Double.parseDouble(up.substring(0, up.indexOf(' ')));
    } catch (Exception error) {
      return System.nanoTime() / 1e9; // another system, or another form
    }
  }
}
