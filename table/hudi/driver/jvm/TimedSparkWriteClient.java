package lockstep.hudi;

import java.util.List;
import org.apache.hudi.client.SparkRDDWriteClient;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.table.HoodieTable;

/**
 * Hudi's Spark write client, which knows how long the metadata table took within its last commit.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class TimedSparkWriteClient extends SparkRDDWriteClient {
  private volatile String written = "";
  private volatile long took;

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

  /** Milliseconds in this instant's commit, if that was the last one; -1 where it wrote no metadata table. */
  public long metadataMillis(String instant) {
    return written.equals(instant) ? took / 1000000L : -1L;
  }
}
