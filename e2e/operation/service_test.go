package operation

import (
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// TestServerStartsAsAService: Kubernetes' variables are no settings, and a misspelt one does not prevent the
// start.
func TestServerStartsAsAService(t *testing.T) {
	t.Parallel()
	cmd := harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json")
	cmd.Env = append(cmd.Env, "CELLSERVER_PORT=tcp://10.0.0.1:6380", "CELLSERVER_SERVICE_HOST=10.0.0.1", "CELLSERVER_REQUIREPAS=s3cret")
	p := harness.Start(t, cmd)
	p.Eventually(t, "be ready", p.ReadReady)
	if log := p.Log.String(); strings.Count(log, "unknown setting") != 1 || !strings.Contains(log, "did you mean CELLSERVER_REQUIREPASS?") {
		t.Errorf("logged %s", log)
	}
}
