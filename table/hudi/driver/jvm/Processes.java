package lockstep.hudi;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/**
 * Which process this is, and whether another one is gone: whoever holds a table lock writes into it who he is.
 *
 * <p>The same in Python: table/hudi/driver/holder.py. Compiled when it is needed (table/hudi/driver/compiled.py).
 */
public final class Processes {
  /** Boot, name space of processes, number, start: what tells this process from every other, before and after it. */
  public static final String THIS = thisOne();

  private static final int WORDS = 4;

  private Processes() {
  }

  private static String thisOne() {
    long pid = ManagementFactory.getRuntimeMXBean().getPid();
    try {
      String boot = text("/proc/sys/kernel/random/boot_id").trim();
      String space = Files.readSymbolicLink(Paths.get("/proc/self/ns/pid", new String[0])).toString();
      return boot + " " + space + " " + pid + " " + started(pid);
    } catch (IOException error) {
      return "pid " + pid; // another system: nobody can prove that it is dead
    }
  }

  /** Whether it is proved gone. One of another boot or container cannot be judged from here. */
  public static boolean isDead(String process) {
    String[] theirs = process.split(" ");
    String[] ours = THIS.split(" ");
    if (theirs.length != WORDS || ours.length != WORDS || !theirs[0].equals(ours[0]) || !theirs[1].equals(ours[1])) {
      return false;
    }
    try {
      return !theirs[3].equals(started(Long.parseLong(theirs[2])));
    } catch (NumberFormatException error) {
      return false;
    }
  }

  /**
   * In ticks since boot, after proc(5); empty where it is gone. One that was killed counts as long as one of its
   * threads may still write.
   */
  private static String started(long pid) {
    String folder = "/proc/" + pid;
    try {
      String stat = text(folder + "/stat");
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      if ("ZX".contains(fields[0])) {
        String[] threads = new File(folder + "/task").list();
        if (threads == null || threads.length <= 1) {
          return "";
        }
      }
      return fields[19];
    } catch (IOException gone) {
      return "";
    }
  }

  private static String text(String path) throws IOException {
    return new String(Files.readAllBytes(Paths.get(path, new String[0])), StandardCharsets.UTF_8);
  }
}
