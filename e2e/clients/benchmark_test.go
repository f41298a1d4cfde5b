package clients

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
)

func TestRedisBenchmark(t *testing.T) {
	requests := 40_000
	if racetest.OmitsLong() {
		requests = 10_000
	}
	for _, args := range []string{"-P 1", "-P 16", "-P 16 -3 --threads 2"} {
		t.Run(args, func(t *testing.T) {
			p := harness.StartServer(t)
			cmd := harness.RedisTool(t, p, "redis-benchmark", append(strings.Fields(args), "-n", strconv.Itoa(requests), "-c", "50",
				"-r", "100000", "--csv", "cl.throttle", "k:__rand_int__", "15", "30", "60", "1")...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if trouble := regexp.MustCompile(`(?i)warning|err`).Find(out); trouble != nil {
				t.Errorf("it printed %q:\n%s", trouble, out)
			}
			if made := p.Metric(t, "cellserver_decisions_total"); made != float64(requests) {
				t.Errorf("%.0f decisions were counted, want %d", made, requests)
			}
			t.Logf("%s", out)
		})
	}
}
