// Command clients tests real Redis clients with cellserver, or with another server, and writes down the
// results. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"cellserver/lab/clients/internal/table"
	"cellserver/lab/clients/internal/target"
)

const usage = `clients tests real Redis clients with cellserver, and writes their results to docs/CLIENTS.md.

Usage:
  clients [flags]                run in lab/clients; builds cellserver and tests it
  clients [flags] -- COMMAND...  tests another server, and writes its results to standard output; COMMAND contains
                                 {port} {tls-port} {metrics-port} {password} {cert} {key} {ca}
  clients failover [flags]       has clients follow Sentinel while the leader of a pair changes

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	page   string   // file of the page; empty for standard output
	check  bool     // require all clients, and compare the page instead of writing it
	only   []string // clients' directories; all if there are none
	server []string // command of another server
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := pflag.NewFlagSet("clients", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { _, _ = fmt.Fprint(stderr, usage, flags.FlagUsages()) }
	flags.StringVar(&s.page, "page", "../../docs/CLIENTS.md", "the page with the results")
	flags.BoolVar(&s.check, "check", os.Getenv("CI") == "true",
		"fail if a client is missing, and compare the page's checks instead of writing it; set where CI=true")
	flags.StringSliceVar(&s.only, "only", nil, "test only these clients, by directory, and write their results to standard output")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	s.server = flags.Args()
	if len(s.server) > 0 && flags.ArgsLenAtDash() != 0 {
		return settings{}, fmt.Errorf("unexpected argument %s; give a server's command after --", s.server[0])
	}
	known := map[string]bool{}
	for _, c := range matrix() {
		known[c.dir] = true
	}
	for _, dir := range s.only {
		if !known[dir] {
			return settings{}, fmt.Errorf("--only: there is no client %q; the clients are the directories of lab/clients", dir)
		}
	}
	if len(s.server) > 0 || len(s.only) > 0 {
		s.page = "" // not the whole page
	}
	return s, nil
}

// password has characters that must be escaped in a URL.
const password = "s3cret@/:door"

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "failover" {
		return runFailover(ctx, args[1:], stdout, stderr)
	}
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cellserver-clients-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files, err := target.WriteCertificates(dir, time.Now())
	if err != nil {
		return err
	}
	server, err := serverCommand(ctx, dir, s.server)
	if err != nil {
		return err
	}
	r := runner{dir: dir, spec: target.Spec{Argv: server, Password: password, Files: files}, log: stderr}
	outcomes := r.runAll(ctx, selected(s.only))
	return conclude(s, outcomes, stdout, stderr)
}

func selected(dirs []string) []client {
	if len(dirs) == 0 {
		return matrix()
	}
	var clients []client
	for _, c := range matrix() {
		for _, dir := range dirs {
			if c.dir == dir {
				clients = append(clients, c)
				break
			}
		}
	}
	return clients
}

// serverCommand returns the given command, with an absolute path because it runs elsewhere, or cellserver.
func serverCommand(ctx context.Context, dir string, given []string) ([]string, error) {
	if len(given) == 0 {
		return buildCellserver(ctx, dir)
	}
	file, err := exec.LookPath(given[0])
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return nil, fmt.Errorf("the server's command: %w", err)
	}
	return append([]string{file}, given[1:]...), nil
}

// buildCellserver builds cellserver and returns the command that starts it.
func buildCellserver(ctx context.Context, dir string) ([]string, error) {
	binary := filepath.Join(dir, "cellserver")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/cellserver")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build cellserver, in lab/clients of its source: %w: %s", err, out)
	}
	return []string{
		binary, "--addr", "127.0.0.1:{port}", "--tls-addr", "127.0.0.1:{tls-port}", "--tls-cert", "{cert}",
		"--tls-key", "{key}", "--metrics-addr", "127.0.0.1:{metrics-port}", "--requirepass", "{password}",
	}, nil
}

// conclude writes or compares the page, and reports what failed.
func conclude(s settings, outcomes []outcome, stdout, stderr io.Writer) error {
	var failed, missing []string
	var rows []table.Row
	for _, o := range outcomes {
		switch {
		case o.missing != "":
			missing = append(missing, fmt.Sprintf("%s is not tested: sudo apt-get install %s", o.client.name, o.missing))
		case o.err != nil:
			failed = append(failed, fmt.Sprintf("%s: %v", o.client.name, o.err))
			fallthrough
		default:
			rows = append(rows, o.row)
		}
	}
	for _, line := range missing {
		_, _ = fmt.Fprintln(stderr, line)
	}
	if s.check {
		failed = append(failed, missing...)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d clients failed:\n%s", len(failed), len(outcomes), strings.Join(failed, "\n"))
	}
	sentinel, err := sentinelSection()
	if err != nil {
		return err
	}
	results := table.Section(checks(), rows)
	if s.page == "" {
		_, err := io.WriteString(stdout, results+sentinel)
		return err
	}
	if len(missing) > 0 && !s.check {
		_, err := fmt.Fprintf(stderr, "%s is not written: not all clients are installed\n", s.page)
		return err
	}
	return s.updatePage(results, sentinel)
}

// marker ends what people write on the page.
const marker = "<!-- make clients writes what follows -->\n"

// updatePage compares what follows the marker, or replaces it.
func (s settings) updatePage(results, sentinel string) error {
	page, err := os.ReadFile(s.page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	written, was, found := strings.Cut(string(page), marker)
	if !found {
		return fmt.Errorf("%s has no line %q", s.page, marker)
	}
	if !s.check {
		now := written + marker + results + sentinel
		if err := os.WriteFile(s.page, []byte(now), 0o644); err != nil { //nolint:gosec // a page for all to read
			return fmt.Errorf("write the page: %w", err)
		}
		return nil
	}
	differences := table.Differences(was, results)
	if !strings.HasSuffix(was, sentinel) {
		differences = append(differences, "the section on Sentinel has other lines than the programs")
	}
	if len(differences) > 0 {
		return fmt.Errorf("%s is out of date, run make clients: %s", s.page, strings.Join(differences, "; "))
	}
	return nil
}
