package operation

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"cellserver/e2e/harness"
)

// manyLimits is a file of 1,000 limits and 20,000 overrides, whose last capacity is given.
func manyLimits(capacity int) string {
	var b strings.Builder
	b.WriteString("limits:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  l%d:\n    rules: [{algorithm: fixed_window, max_count: 1000, period: 24h}]\n    overrides:\n      - keys: [", i)
		for key := range 20 {
			fmt.Fprintf(&b, "k%d, ", key)
		}
		fmt.Fprintf(&b, "last]\n        rules: [{algorithm: fixed_window, max_count: 2000, period: 24h}]\n      - {pattern: 'p*', rules: [{algorithm: quota, max_count: %d, every: year}]}\n", capacity)
	}
	return b.String()
}

// TestReloadUnderLoad: while a large file is read again and again, every call is decided by the rules of one
// of its versions, and the unchanged limits lose and grant nothing.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	file := harness.WriteFile(t, manyLimits(3000))
	p := harness.StartServer(t, "--limits-file", file)
	client := harness.Database(t, p, 0)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for key, capacity := range map[string][]int64{"own": {1000}, "k7": {2000}, "pattern": {3000, 3001}} {
		all.Go(func() {
			allowed := int64(0)
			for done := false; !done || allowed < capacity[0]; {
				select {
				case <-stop:
					done = true
				default:
				}
				r, err := client.Do(t.Context(), "CL.CHECK", "l500", key).Int64Slice()
				switch {
				case err != nil || len(r) != 5:
					t.Errorf("%s: %v, %v", key, r, err)
					return
				case r[1] != capacity[0] && r[1] != capacity[len(capacity)-1]:
					t.Errorf("%s: decided by a limit of %d, want one of %d", key, r[1], capacity)
					return
				case r[0] == 0:
					allowed++
				}
			}
			if allowed > capacity[len(capacity)-1] {
				t.Errorf("%s: %d were allowed, want at most %d", key, allowed, capacity)
			}
		})
	}
	for i := range 6 {
		if err := os.WriteFile(file, []byte(manyLimits(3000+(i+1)%2)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := client.Do(t.Context(), "CL.LIMIT", "RELOAD").Err(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
}
