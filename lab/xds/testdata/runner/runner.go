// Package runner takes the place of envoyproxy/ratelimit's own for its integration tests: it starts the program
// that RATELIMIT_PROGRAM names, by its environment, and reads its statistics from its metrics.
package runner

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kelseyhightower/envconfig"
	gostats "github.com/lyft/gostats"

	"github.com/envoyproxy/ratelimit/src/settings"
)

const stopTimeout = time.Minute

// Runner is a running program.
type Runner struct {
	cmd   *exec.Cmd
	store *metricsStore

	mu      sync.Mutex // guards stopped, and that no program starts after it
	stopped bool
	done    chan struct{} // closed when Run returns
}

func NewRunner(s settings.Settings) Runner { //nolint:govet // as the tests have it
	metrics := os.Getenv("RATELIMIT_METRICS") // host:port
	cmd := exec.Command(os.Getenv("RATELIMIT_PROGRAM"))
	cmd.Env = append(environment(s),
		"CELLSERVER_ADDR=127.0.0.1:0", "CELLSERVER_METRICS_ADDR=127.0.0.1:0", "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
		"USE_STATSD=false", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR="+metrics, "PROMETHEUS_PATH=/metrics")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return Runner{cmd: cmd, store: newMetricsStore("http://" + metrics + "/metrics"), done: make(chan struct{})}
}

func (r *Runner) GetStatsStore() gostats.Store { return r.store }

// Run returns once the program has ended.
func (r *Runner) Run() {
	defer close(r.done)
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return
	}
	err := r.cmd.Start()
	r.mu.Unlock()
	if err == nil {
		err = r.cmd.Wait()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", r.cmd.Path, "ended:", err)
	}
}

func (r *Runner) Stop() {
	r.mu.Lock()
	r.stopped = true
	if r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(stopTimeout):
		_ = r.cmd.Process.Kill()
		<-r.done
		panic("runner: " + r.cmd.Path + " does not end")
	}
}

// environment returns the variables of settings that are not their defaults.
func environment(s settings.Settings) (env []string) {
	var defaults settings.Settings
	if err := envconfig.Process("UNLIKELY_PREFIX_", &defaults); err != nil {
		panic(err)
	}
	of, other := reflect.ValueOf(s), reflect.ValueOf(defaults)
	for i := range of.NumField() {
		name := of.Type().Field(i).Tag.Get("envconfig")
		if value := of.Field(i); name != "" && !reflect.DeepEqual(value.Interface(), other.Field(i).Interface()) {
			env = append(env, name+"="+text(value.Interface()))
		}
	}
	return env
}

// text writes a setting as envconfig reads it.
func text(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var pairs []string
		for name, text := range v {
			pairs = append(pairs, name+":"+text)
		}
		sort.Strings(pairs)
		return strings.Join(pairs, ",")
	default:
		return fmt.Sprint(v)
	}
}
