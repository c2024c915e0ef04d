package lockstep.hudi;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hudi.common.util.PartitionPathEncodeUtils;
import org.apache.hudi.sync.common.model.PartitionValueExtractor;

/**
 * Values of a table partition's fields, from its folder, as rows hold them. Hudi's own extractors keep percent-encoded
 * values as they are, and refuse some.
 *
 * <p>Hudi makes instances by the name of the class, so the layout of the table is static: one sync at a time.
 *
 * <p>Compiled when it is needed (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class PartitionValues implements PartitionValueExtractor {
  /** The method of Hudi that drops a partition by a name, which is a path: values in it are encoded. */
  private static final String NAMING = "getPartitionClauseForDrop";

  private static volatile String[] fields = new String[0];
  private static volatile boolean isHiveStyle;
  private static volatile boolean isEncoded;

  /** The layout of the table whose metastore is synchronized next. */
  public static void use(List names, boolean hiveStyle, boolean encoded) {
    String[] found = new String[names.size()];
    for (int at = 0; at < found.length; at++) {
      found[at] = (String) names.get(at);
    }
    fields = found;
    isHiveStyle = hiveStyle;
    isEncoded = encoded;
  }

  public List extractPartitionValuesInPath(String folder) {
    List values = decoded(levels(folder));
    if (!NAMING.equals(new Throwable().getStackTrace()[1].getMethodName())) {
      return values;
    }
    List encoded = new ArrayList();
    for (Iterator all = values.iterator(); all.hasNext(); ) {
      encoded.add(PartitionPathEncodeUtils.escapePathName((String) all.next()));
    }
    return encoded;
  }

  /**
   * Replaces values that former releases have left percent-encoded in the metastore; returns their number. Partitions
   * with any other values stay.
   */
  public static int repair(IMetaStoreClient client, String database, String table, String base) throws Exception {
    String root = plain(base) + "/";
    SortedMap wrong = new TreeMap();
    Iterator each = client.listPartitions(database, table, (short) -1).iterator();
    while (each.hasNext()) {
      Partition partition = (Partition) each.next();
      String place = plain(partition.getSd().getLocation());
      List levels = place.startsWith(root) ? levels(place.substring(root.length())) : new ArrayList();
      if (levels.equals(partition.getValues()) && !decoded(levels).equals(levels)) {
        // Decoded values are shorter. In this order none of them is what another partition has yet.
        wrong.put(Long.valueOf((((long) place.length()) << 32) + wrong.size()), partition);
      }
    }
    for (Iterator all = wrong.values().iterator(); all.hasNext(); ) {
      replace(client, (Partition) all.next());
    }
    return wrong.size();
  }

  /** First the right one: a sync that fails between leaves both, and the next one replaces again. */
  private static void replace(IMetaStoreClient client, Partition partition) throws Exception {
    Partition right = partition.deepCopy();
    right.setValues(decoded(partition.getValues()));
    List one = new ArrayList();
    one.add(right);
    client.add_partitions(one, true, false);
    client.dropPartition(partition.getDbName(), partition.getTableName(), partition.getValues(), false);
  }

  /** The spelled value of each field. */
  private static List levels(String folder) {
    List found = new ArrayList();
    if (fields.length == 1) {
      found.add(value(folder, 0, folder));
      return found;
    }
    String[] parts = folder.split("/", -1);
    if (parts.length != fields.length) {
      throw new IllegalArgumentException(
          "table partition " + folder + " has " + parts.length + " levels for " + fields.length + " fields");
    }
    for (int at = 0; at < parts.length; at++) {
      found.add(value(parts[at], at, folder));
    }
    return found;
  }

  private static String value(String level, int at, String folder) {
    String prefix = fields[at] + "=";
    if (!isHiveStyle) {
      return level;
    }
    if (!level.startsWith(prefix)) {
      throw new IllegalArgumentException("table partition " + folder + " has no field " + fields[at]);
    }
    return level.substring(prefix.length());
  }

  private static List decoded(List levels) {
    List found = new ArrayList();
    for (Iterator all = levels.iterator(); all.hasNext(); ) {
      String level = (String) all.next();
      found.add(isEncoded ? PartitionPathEncodeUtils.unescapePathName(level) : level);
    }
    return found;
  }

  private static String plain(String location) {
    return Path.getPathWithoutSchemeAndAuthority(new Path(location)).toUri().getPath();
  }
}
