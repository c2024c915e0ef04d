package lockstep.hudi;

import java.util.List;
import org.apache.hudi.client.SparkRDDWriteClient;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.table.HoodieTable;

/**
 * Hudi's Spark write client, which knows how long the metadata table took within its last commit, and leaves
 * alone the markers of instants that it is told of: see table/hudi/upkeep/markers.py.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class TimedSparkWriteClient extends SparkRDDWriteClient {
  private volatile String written = "";
  private volatile long took;
  private volatile String left = "";

  public TimedSparkWriteClient(HoodieEngineContext context, HoodieWriteConfig config) {
    super(context, config);
  }

  protected void writeToMetadataTable(boolean skipStreaming, HoodieTable table, String instant, List stats,
      HoodieCommitMetadata metadata) {
    long since = System.nanoTime();
    super.writeToMetadataTable(skipStreaming, table, instant, stats, metadata);
    took = System.nanoTime() - since;
    written = getConfig().isMetadataTableEnabled() ? instant : "";
  }

  protected void finalizeWrite(HoodieTable table, String instant, List stats) {
    if (!left.equals(instant)) {
      super.finalizeWrite(table, instant, stats);
    }
  }

  protected void postCommit(HoodieTable table, HoodieCommitMetadata metadata, String instant, Option extra) {
    if (!left.equals(instant)) {
      super.postCommit(table, metadata, instant, extra);
      return;
    }
    try {
      metrics.updateTableServiceInstantMetrics(table.getActiveTimeline());
    } finally {
      heartbeatClient.stop(instant);
    }
  }

  /** Neither look at its markers nor remove them: all are of files that its commit names. */
  public void leaveMarkers(String instant) {
    left = instant;
  }

  /** Milliseconds in this instant's commit, if that was the last one; -1 where it wrote no metadata table. */
  public long metadataMillis(String instant) {
    return written.equals(instant) ? took / 1000000L : -1L;
  }
}
