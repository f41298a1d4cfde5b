package deploytest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"

	"cellserver/internal/edge/xds/xdstest"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
	"cellserver/lab/internal/built"
)

// TestPrometheus lets a real Prometheus scrape real servers, with a second for each minute of the rules. A
// burst of limited calls fires an alert, and its end clears it; likewise a stop and a start of the server.
func TestPrometheus(t *testing.T) {
	processtest.Need(t, "prometheus")
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	binary := built.Server(t)
	dataDir := "CELLSERVER_DATA_DIR=" + t.TempDir()
	s := startServer(t, binary, "127.0.0.1:0", "127.0.0.1:0", append(doors(t), "CELLSERVER_TOP_KEYS_METRIC=10", dataDir)...)
	shared, replica := startShared(t, binary), startReplica(t, binary, s)
	load := startLoad(t, s.addr)
	p := startPrometheus(t, configFor(t, s.metrics, shared.metrics, replica.metrics))
	awaitHistory(t, p)
	p.Eventually(t, "find all healthy", func() bool {
		return !slices.ContainsFunc(p.alerts(t), func(alert string) bool { return strings.HasSuffix(alert, " firing") })
	})

	load.limited.Store(true)
	p.await(t, "CellserverDenialSpike", true)
	checkPanels(t, p)
	checkNames(t, s, shared, replica)
	load.limited.Store(false)
	p.await(t, "CellserverDenialSpike", false)

	load.stop()
	if code := s.Stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	p.await(t, "CellserverDown", true)
	p.await(t, "CellserverReplicaLinkDown", true)
	p.await(t, "CellserverLeaders", true)
	startServer(t, binary, s.addr, s.metrics, dataDir)
	p.await(t, "CellserverDown", false)
	p.await(t, "CellserverReplicaLinkDown", false)
	p.await(t, "CellserverLeaders", false)
	p.await(t, "CellserverRestarted", true) // rules_test.yml has it clear, after 15 minutes
}

// TestPrometheusWithNativeHistogramsAndToken checks that all panels and the latency rule have values without
// classic histograms. Prometheus authenticates with the token.
func TestPrometheusWithNativeHistogramsAndToken(t *testing.T) {
	processtest.Need(t, "prometheus")
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	t.Parallel()
	token := write(t, t.TempDir(), "metrics_token", "a-token\n")
	binary := built.Server(t)
	s := startServer(t, binary, "127.0.0.1:0", "127.0.0.1:0", append(doors(t), "CELLSERVER_TOP_KEYS_METRIC=10",
		"CELLSERVER_METRICS_TOKEN_FILE="+token, "CELLSERVER_DATA_DIR="+t.TempDir())...)
	startLoad(t, s.addr).limited.Store(true)
	shared := startShared(t, binary, "CELLSERVER_METRICS_TOKEN_FILE="+token)
	replica := startReplica(t, binary, s, "CELLSERVER_METRICS_TOKEN_FILE="+token)
	config := configFor(t, s.metrics, shared.metrics, replica.metrics)
	without := startPrometheus(t, config)
	with := startPrometheus(t, strings.Replace(withAuthorization(t, config), "/etc/prometheus/metrics_token", token, 1), "--enable-feature=native-histograms")
	with.Eventually(t, "see native histograms in the rules", func() bool {
		v := with.query(t, "job_instance:cellserver_command_duration_seconds:p99_rate5m > 0 and job_instance:cellserver_denied:ratio_rate5m > 0")
		return len(v) == 1
	})
	if v := with.query(t, "cellserver_command_duration_seconds_bucket"); len(v) > 0 {
		t.Errorf("there are classic histograms as well: %v", v)
	}
	if v := without.query(t, "up == 0"); len(v) != 3 {
		t.Errorf("without the token: %v", v)
	}
	checkPanels(t, with)
}

// doors returns the settings of a server that all panels are about, also those of limits over xDS.
func doors(t *testing.T) []string {
	t.Helper()
	limits := xdstest.New(t, "127.0.0.1:0")
	limits.Set(t, "1", xdstest.Limit("site", "customer", 1000))
	return []string{"CELLSERVER_HTTP_ADDR=127.0.0.1:0", "CELLSERVER_GRPC_ADDR=127.0.0.1:0", "CELLSERVER_ENVOY_XDS=" + limits.Addr}
}

// withAuthorization uncomments the part of a configuration about a token.
func withAuthorization(t *testing.T, text string) string {
	t.Helper()
	block := regexp.MustCompile(`(?m)^( *)# (authorization:| +(?:credentials|credentials_file|name|key):.*)$`)
	if !block.MatchString(text) {
		t.Fatal("it has no comment about a token")
	}
	return block.ReplaceAllString(text, "$1$2")
}

// load makes allowed calls all the time and, while limited is set, nine times as many that are limited.
type load struct {
	limited atomic.Bool
	stop    func()
}

func startLoad(t *testing.T, addr string) *load {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-pause.C {
			_, _ = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Do(ctx, "CL.THROTTLE", "calm", 1_000_000, 1_000_000, 1)
				for range 9 {
					if l.limited.Load() {
						pipe.Do(ctx, "CL.THROTTLE", "hot", 0, 1, 3600)
					}
				}
				return nil
			})
		}
	}()
	client.Do(ctx, "CL.LIMIT", "SET", "named", 0, 1, 3600)
	client.Do(ctx, "CL.LIMIT", "SET", "several", "FUNNEL", 0, 1, 3600, "FIXEDWINDOW", 10, 3600)
	client.Do(ctx, "CL.LIMIT", "OVERRIDE", "several", "vip", "UNLIMITED")
	client.Do(ctx, "CL.LIMIT", "SET", "spend", "QUOTA", 50_000_000, "MONTH", "UNIT", "usd")
	client.Do(ctx, "CL.MRESERVE", 2, "several", "k", 1, "spend", "k", 20_000, "TTL", 60_000)
	client.Do(ctx, "EVAL", "return 1", 0)
	client.Do(ctx, "AUTH", "wrong")
	client.Do(ctx, "BGSAVE")
	l.stop = func() {
		cancel()
		<-done
		_ = client.Close()
	}
	t.Cleanup(l.stop)
	return l
}

// prom is a running Prometheus.
type prom struct {
	*processtest.Process
	api prometheus.API
}

// accelerated turns minutes into seconds and hours into minutes.
func accelerated(text string) string {
	return regexp.MustCompile(`\b\d+[mh]\b`).ReplaceAllStringFunc(text, func(d string) string {
		n, _ := strconv.Atoi(d[:len(d)-1])
		if strings.HasSuffix(d, "h") {
			n *= 60
		}
		return strconv.Itoa(n) + "s"
	})
}

// startShared starts a server whose store is a Redis, and lets it decide once.
func startShared(t *testing.T, binary string, env ...string) *server {
	t.Helper()
	s := startServer(t, binary, "127.0.0.1:0", "127.0.0.1:0", append(env,
		"CELLSERVER_STORE=redis://"+redistest.Server(t).Addr)...)
	client := redistest.NewClient(t, redis.Options{Addr: s.addr, Protocol: 2, DisableIdentity: true})
	s.Eventually(t, "decide", func() bool {
		return client.Do(t.Context(), "CL.THROTTLE", "k", 1, 1, 60).Err() == nil
	})
	return s
}

// startReplica starts a replica of a server, and waits until it follows.
func startReplica(t *testing.T, binary string, leader *server, env ...string) *server {
	t.Helper()
	s := startServer(t, binary, "127.0.0.1:0", "127.0.0.1:0", append(env, "CELLSERVER_REPLICA_OF="+leader.addr)...)
	client := redistest.NewClient(t, redis.Options{Addr: s.addr, Protocol: 2, DisableIdentity: true})
	s.Eventually(t, "follow its leader", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return s
}

// configFor returns the accelerated configuration with other targets.
func configFor(t *testing.T, targets ...string) string {
	t.Helper()
	return strings.NewReplacer("15s", "500ms", "cellserver:9380", strings.Join(targets, ", ")).Replace(read(t, "deploy/prometheus/prometheus.yml"))
}

func startPrometheus(t *testing.T, config string, flags ...string) *prom {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "cellserver.rules.yml", accelerated(read(t, "deploy/prometheus/cellserver.rules.yml")))
	path := write(t, dir, "prometheus.yml", config)
	for range 5 { // another process may take the port first
		addr := processtest.FreeAddr(t)
		p := &prom{Process: processtest.Start(t, processtest.Command(t, "prometheus", append(flags, "--config.file="+path,
			"--storage.tsdb.path="+dir+"/data", "--web.listen-address="+addr, "--log.level=warn")...))}
		client, err := api.NewClient(api.Config{Address: "http://" + addr})
		if err != nil {
			t.Fatal(err)
		}
		p.api = prometheus.NewAPI(client)
		p.Eventually(t, "be ready", func() bool {
			_, err := p.api.Buildinfo(t.Context())
			return err == nil || p.HasExited()
		})
		if !p.HasExited() {
			return p
		}
		p.Await(t)
	}
	t.Fatal("Prometheus does not start")
	return nil
}

// alerts returns the pending and firing alerts, with their states.
func (p *prom) alerts(t *testing.T) (alerts []string) {
	t.Helper()
	r, err := p.api.Alerts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Alerts {
		alerts = append(alerts, fmt.Sprint(a.Labels["alertname"], " ", a.State))
	}
	return alerts
}

// await waits until an alert fires, or until it is resolved.
func (p *prom) await(t *testing.T, alert string, firing bool) {
	t.Helper()
	p.Eventually(t, fmt.Sprintf("say that %s fires: %t", alert, firing), func() bool {
		alerts := p.alerts(t)
		if firing {
			return slices.Contains(alerts, alert+" firing")
		}
		return !slices.Contains(alerts, alert+" firing") && !slices.Contains(alerts, alert+" pending")
	})
}

func (p *prom) query(t *testing.T, expr string) model.Vector {
	t.Helper()
	value, _, _, err := p.api.Query(t.Context(), expr, time.Now())
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	switch v := value.(type) {
	case model.Vector:
		return v
	case *model.Scalar:
		return model.Vector{{Value: v.Value}}
	}
	t.Fatalf("%s: got a %T", expr, value)
	return nil
}

// awaitHistory waits for some seconds without limited calls, the hour before to the accelerated rules.
func awaitHistory(t *testing.T, p *prom) {
	t.Helper()
	p.Eventually(t, "know the limited share of the hour before", func() bool {
		v := p.query(t, "job_instance:cellserver_denied:ratio_rate1h offset 5s")
		return len(v) == 1 && v[0].Value == 0
	})
}

// checkPanels waits for data in every panel; a server may not have been scraped twice yet.
func checkPanels(t *testing.T, p *prom) {
	t.Helper()
	// only a restart provides data
	empty := []string{"annotation Starts"}
	for _, q := range readDashboard(t).queries() {
		if !slices.Contains(empty, q.where) {
			p.Eventually(t, fmt.Sprintf("have data for %s: %s", q.where, q.expr), func() bool {
				return len(p.query(t, accelerated(q.expr))) > 0
			})
		}
	}
}

// checkNames expects the servers to have every metric of the rules and the dashboard.
func checkNames(t *testing.T, all ...*server) {
	t.Helper()
	page := ""
	for _, s := range all {
		page += get(t, "http://"+s.metrics+"/metrics")
	}
	var exprs []string
	for _, r := range readRules(t) {
		exprs = append(exprs, r.Expr)
	}
	for _, q := range readDashboard(t).queries() {
		exprs = append(exprs, q.expr)
	}
	shown := func(name string) bool { return strings.Contains(page, "\n# TYPE "+name+" ") }
	for _, name := range regexp.MustCompile(`\b(cellserver|process|go)_[a-z_]+`).FindAllString(strings.Join(exprs, "\n"), -1) {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if !shown(name) && !isRecorded(t, name) {
			t.Errorf("the server has no metric %s", name)
		}
	}
}

// isRecorded reports whether a name is part of a recording rule's name.
func isRecorded(t *testing.T, name string) bool {
	t.Helper()
	return slices.ContainsFunc(readRules(t), func(r rule) bool { return strings.Contains(r.Record, ":"+name+":") })
}

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
