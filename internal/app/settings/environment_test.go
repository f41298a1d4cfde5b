package settings

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestUnknownVariablesAreWarnedOf(t *testing.T) {
	const unknown = " has no effect; "
	for _, tt := range []struct{ variable, want string }{
		{"CELLSERVER_REQUIREPAS=s3cret", "unknown setting CELLSERVER_REQUIREPAS" + unknown + "did you mean CELLSERVER_REQUIREPASS?"},
		{"CELLSERVER_REQUIRE_PASS=s3cret", "unknown setting CELLSERVER_REQUIRE_PASS" + unknown + "did you mean CELLSERVER_REQUIREPASS?"},
		{"CELLSERVER_METRICS_ADDRESS=s3cret", "unknown setting CELLSERVER_METRICS_ADDRESS" + unknown + "did you mean CELLSERVER_METRICS_ADDR?"},
		{"CELLSERVER_MAX_CLIENTS=", "unknown setting CELLSERVER_MAX_CLIENTS" + unknown + "did you mean CELLSERVER_MAXCLIENTS?"},
		{"CELLSERVER_ACL=s3cret", "unknown setting CELLSERVER_ACL" + unknown + "see cellserver --help"},
		{"CELLSERVER_FAVOURITE_COLOUR=s3cret", "unknown setting CELLSERVER_FAVOURITE_COLOUR" + unknown + "see cellserver --help"},
		{"CELLSERVER_=s3cret", "unknown setting CELLSERVER_" + unknown + "see cellserver --help"},
		{"CELLSERVER_HELP=s3cret", "unknown setting CELLSERVER_HELP" + unknown + "see cellserver --help"},
		{"CELLSERVER_PORT=6380", "unknown setting CELLSERVER_PORT" + unknown + "use CELLSERVER_ADDR"},
		{"CELLSERVER_REQUIREPASS=s3cret", ""},
		{"CELLSERVER_MAXCLIENTS=7", ""},
		{"OTHER_REQUIREPAS=s3cret", ""},
		{"CELLSERVER=s3cret", ""},
		// Those of the Kubernetes services cellserver and cellserver-metrics.
		{"CELLSERVER_PORT=tcp://10.0.0.1:6380", ""},
		{"CELLSERVER_SERVICE_HOST=10.0.0.1", ""},
		{"CELLSERVER_SERVICE_PORT=6380", ""},
		{"CELLSERVER_SERVICE_PORT_RESP=6380", ""},
		{"CELLSERVER_PORT_6380_TCP=tcp://10.0.0.1:6380", ""},
		{"CELLSERVER_PORT_6380_TCP_ADDR=10.0.0.1", ""},
		{"CELLSERVER_PORT_6380_TCP_PORT=6380", ""},
		{"CELLSERVER_PORT_6380_TCP_PROTO=tcp", ""},
		{"CELLSERVER_METRICS_PORT=tcp://10.0.0.1:9380", ""},
		{"CELLSERVER_METRICS_SERVICE_HOST=10.0.0.1", ""},
		{"CELLSERVER_METRICS_PORT_9380_TCP_ADDR=10.0.0.1", ""},
	} {
		var log bytes.Buffer
		WarnOfUnknownVariables([]string{"PATH=/bin", tt.variable}, slog.New(slog.NewTextHandler(&log, nil)))
		got := log.String()
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || strings.Count(got, "level=WARN") != min(1, len(tt.want)) || strings.Contains(got, "s3cret") {
			t.Errorf("%s: got %q, want %q", tt.variable, got, tt.want)
		}
	}
}
