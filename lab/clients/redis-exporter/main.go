// Command redis-exporter has prometheus-redis-exporter scrape the server, as its users do.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/lab/clients/internal/expect"
	"cellserver/lab/clients/internal/report"
	"cellserver/lab/clients/internal/target"
)

const binary = "prometheus-redis-exporter"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "redis-exporter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	r := report.New(os.Stdin, os.Stdout)
	version, err := exporterVersion(ctx)
	if err != nil {
		return err
	}
	r.Version(version)
	if err := fill(ctx); err != nil {
		return err
	}
	r.Check("url", func() error { return scrapeOnce(ctx, os.Getenv("REDIS_URL"), []string{up}) })
	r.Check("tls", func() error {
		// Without the test's authority it has only the system's.
		if err := scrapeOnce(ctx, os.Getenv("REDIS_TLS_URL"), []string{down}); err != nil {
			return err
		}
		return scrapeOnce(ctx, os.Getenv("REDIS_TLS_URL"), []string{up}, "--tls-ca-cert-file", os.Getenv("REDIS_CA"))
	})
	r.Check("scrape", func() error {
		return scrapeOnce(ctx, os.Getenv("REDIS_URL"), []string{
			up, "redis_exporter_last_scrape_error{err=\"\"} 0", "redis_connected_clients ",
			"redis_db_keys{db=\"db0\"} 2", "redis_keys_count{db=\"db0\",key=\"scrape:*\"} 2",
			"redis_key_size{db=\"db0\",key=\"scrape:1\"} ", "redis_commands_total{cmd=\"cl.throttle\"} 2",
			"redis_connected_clients_details{",
		})
	})
	r.Check("wrong password", func() error {
		u, err := url.Parse(os.Getenv("REDIS_URL"))
		if err != nil {
			return err
		}
		u.User = url.UserPassword("", "not it")
		return scrapeOnce(ctx, u.String(), []string{down})
	})
	r.Check("reconnect", func() error { return reconnect(ctx, r) })
	return r.Err()
}

// The metrics of an exporter whose server is up, and down.
const (
	up   = "redis_up 1"
	down = "redis_up 0"
)

// scrapeOnce starts an exporter and expects these lines and, if the server is up, no errors in its log.
func scrapeOnce(ctx context.Context, redisURL string, lines []string, flags ...string) error {
	e, err := start(ctx, redisURL, flags...)
	if err != nil {
		return err
	}
	err = e.scrape(ctx, lines)
	e.stop()
	if lines[0] == up {
		err = errors.Join(err, e.logged())
	}
	return err
}

// reconnect scrapes with the same exporter before and after the restart.
func reconnect(ctx context.Context, r *report.Reporter) error {
	e, err := start(ctx, os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer e.stop()
	if err := e.scrape(ctx, []string{up}); err != nil {
		return err
	}
	if err := r.Restart(); err != nil {
		return err
	}
	if err := e.scrape(ctx, []string{up}); err != nil {
		return err
	}
	e.stop()
	return e.logged()
}

// fill creates keys for the exporter to find.
func fill(ctx context.Context) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	for _, key := range []string{"scrape:1", "scrape:2"} {
		reply, err := client.Do(ctx, "CL.THROTTLE", key, 15, 1, expect.DaySeconds).Int64Slice()
		if err := expect.Reply(reply, err, 0, 16, 15); err != nil {
			return err
		}
	}
	return nil
}

// exporterVersion reads the exporter's version from its first log line.
func exporterVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, binary, "--version").CombinedOutput()
	if err != nil {
		return "", err
	}
	if m := regexp.MustCompile(`Exporter (\S+)`).FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	return "", fmt.Errorf("no version in %q", out)
}

// exporter is a running exporter.
type exporter struct {
	page string // URL of its metrics
	cmd  *exec.Cmd
	log  bytes.Buffer // read only after stop
}

const startTimeout = 5 * time.Minute

func start(ctx context.Context, redisURL string, flags ...string) (*exporter, error) {
	ports, err := target.FreePorts(ctx, 1) // the exporter cannot choose a port and report it
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	e := &exporter{page: "http://" + address + "/metrics"}
	e.cmd = exec.CommandContext(ctx, binary, append([]string{"--redis.addr", redisURL, "--web.listen-address", address,
		"--export-client-list", "--check-keys", "db0=scrape:*", "--count-keys", "db0=scrape:*", "--ping-on-connect",
		"--include-config-metrics", "--include-system-metrics"}, flags...)...)
	e.cmd.Stderr = &e.log
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(startTimeout)
	for ; ; time.Sleep(10 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return e, conn.Close()
		}
		if time.Now().After(deadline) {
			e.stop()
			return nil, fmt.Errorf("it does not listen: %w: %s", err, e.log.String())
		}
	}
}

// stop stops the exporter, if it is running.
func (e *exporter) stop() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

// logged returns the errors in the log of a stopped exporter.
func (e *exporter) logged() error {
	var err error
	for line := range strings.Lines(e.log.String()) {
		if strings.Contains(line, "level=error") || strings.Contains(line, "level=warn") {
			err = errors.Join(err, fmt.Errorf("it logs %s", strings.TrimSpace(line)))
		}
	}
	return err
}

// scrape expects metrics lines that begin with these.
func (e *exporter) scrape(ctx context.Context, lines []string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.page, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if !strings.Contains("\n"+string(page), "\n"+line) {
			return fmt.Errorf("no line of the metrics begins with %q", line)
		}
	}
	return nil
}
