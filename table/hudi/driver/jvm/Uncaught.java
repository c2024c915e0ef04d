package lockstep.hudi;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What ends a thread of the driver's JVM, in one line of its log instead of a stack trace past it: Hudi's timers throw
 * what their store refuses, and nobody catches it.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py).
 */
public final class Uncaught implements Thread.UncaughtExceptionHandler {
  private static final Logger LOG = LoggerFactory.getLogger(Uncaught.class);
  private static final int CAUSES_MAX = 20;
  private static final int MESSAGE_MAX = 500;

  private Uncaught() {
  }

  /** Where nobody else has: Spark's own is of executors. */
  public static void install() {
    if (Thread.getDefaultUncaughtExceptionHandler() == null) {
      Thread.setDefaultUncaughtExceptionHandler(new Uncaught());
    }
  }

  public void uncaughtException(Thread thread, Throwable thrown) {
    LOG.error("thread {} of the driver's JVM ended: {}", thread.getName(), said(thrown));
  }

  /** The deepest cause that says something, by the first line of it. */
  private static String said(Throwable thrown) {
    String found = thrown.getClass().getSimpleName();
    Throwable one = thrown;
    for (int at = 0; one != null && at < CAUSES_MAX; at++) {
      String message = one.getMessage();
      if (message != null && message.trim().length() > 0) {
        String line = message.trim().split("\n", 2)[0];
        found = one.getClass().getSimpleName() + ": " + line.substring(0, Math.min(line.length(), MESSAGE_MAX));
      }
      one = one.getCause();
    }
    return found;
  }
}
