package clients

import (
	"regexp"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// TestRedisCLISaves sends what operators send to save and end the server; the next server has the state.
func TestRedisCLISaves(t *testing.T) {
	t.Parallel()
	for interval, appendFsync := range map[string]string{"1h": "everysec", "0": "always", "no": "no"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := harness.StartKeeping(t, dir, "--fsync-interval", interval)
			for _, tt := range []struct{ args, want string }{
				{"cl.throttle k 15 1 3600 1", "^0\n16\n15\n-1\n3600\n"},
				{"waitaof 1 0 0", "^1\n0\n$"},
				{"save", "^OK\n$"},
				{"lastsave", "^[0-9]{10}\n$"},
				{"bgsave schedule", "^Background saving (started|scheduled)\n$"},
				{"cl.throttle late 15 1 3600 1", "^0\n"},
				{"info persistence", `loading:0\r\n(?s:.*)aof_enabled:1\r\n(?s:.*)aof_last_write_status:ok\r\n(?s:.*)cell_disk_status:ok\r\n`},
				{"config get appendonly", "^appendonly\nyes\n$"},
				{"config get appendfsync", "^appendfsync\n" + appendFsync + "\n$"},
				{"config get dir", "^dir\n" + regexp.QuoteMeta(dir) + "\n$"},
				{"shutdown save", "^$"},
			} {
				out, err := harness.RedisTool(t, p, "redis-cli", strings.Fields(tt.args)...).CombinedOutput()
				if err != nil || !regexp.MustCompile(tt.want).Match(out) {
					t.Errorf("redis-cli %s printed %q (%v), want %q", tt.args, out, err, tt.want)
				}
			}
			if code := p.Await(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			p = harness.StartKeeping(t, dir, "--fsync-interval", interval)
			for _, args := range []string{"exists k late", "info persistence"} {
				out, err := harness.RedisTool(t, p, "redis-cli", strings.Fields(args)...).CombinedOutput()
				if err != nil || string(out) != "2\n" && !strings.Contains(string(out), "rdb_last_load_keys_loaded:2\r\n") {
					t.Errorf("after a restart, redis-cli %s printed %q (%v)", args, out, err)
				}
			}
		})
	}
}
