// Command libraries runs libraries that limit with a Redis on redis-server and on cellserver, compares what
// they saw, and writes docs/LIBRARIES.md. See README.md.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"cellserver/lab/clients/internal/target"
)

const usage = `libraries tests libraries that limit with a Redis, and writes docs/LIBRARIES.md.

Usage, in lab/clients:
  libraries [flags]

Flags:
`

// password is that of the servers.
const password = "s3cret"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "libraries:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	page   string
	check  bool   // require all programs, and compare the page instead of writing it
	print  bool   // print what was seen on both servers, and judge nothing
	server string // a binary of cellserver; if empty, it is built
	texts  string // a directory with scripts that stand for those of the streams
	only   []string
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := pflag.NewFlagSet("libraries", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { _, _ = fmt.Fprint(stderr, usage, flags.FlagUsages()) }
	flags.StringVar(&s.page, "page", "../../docs/LIBRARIES.md", "the page to write")
	flags.BoolVar(&s.check, "check", os.Getenv("CI") == "true",
		"fail if a program cannot run, and compare the page instead of writing it; set where CI=true")
	flags.BoolVar(&s.print, "print", false, "print what the libraries saw on both servers, and judge nothing")
	flags.StringVar(&s.server, "server", "", "test this binary of cellserver instead of building one")
	flags.StringVar(&s.texts, "texts", "", "replay the streams with the scripts NAME.lua of this directory")
	flags.StringSliceVar(&s.only, "only", nil, "run only these programs; implies --print")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	s.print = s.print || len(s.only) > 0
	return s, nil
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cellserver-libraries-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := newRunner(ctx, dir, s, stderr)
	if err != nil {
		return err
	}
	chosen, err := selected(s.only)
	if err != nil {
		return err
	}
	results := r.runAll(ctx, chosen)
	if s.print {
		return printAll(stdout, results)
	}
	return conclude(s, results, stderr)
}

func newRunner(ctx context.Context, dir string, s settings, log io.Writer) (*runner, error) {
	files, err := target.WriteCertificates(dir, time.Now())
	if err != nil {
		return nil, err
	}
	control, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("sudo apt-get install redis-server: %w", err)
	}
	binary := s.server
	if binary == "" {
		if binary, err = buildCellserver(ctx, dir); err != nil {
			return nil, err
		}
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	r := &runner{dir: dir, files: files, texts: s.texts, log: log}
	r.control = strings.Fields(control + ` --bind 127.0.0.1 --port {port} --tls-port {tls-port}
		--tls-cert-file {cert} --tls-key-file {key} --tls-ca-cert-file {ca} --tls-auth-clients no
		--requirepass {password} --appendonly no`)
	r.control = append(r.control, "--save", "")
	r.tested = append([]string{binary}, strings.Fields(`--addr 127.0.0.1:{port} --tls-addr 127.0.0.1:{tls-port}
		--tls-cert {cert} --tls-key {key} --metrics-addr 127.0.0.1:{metrics-port} --requirepass {password}`)...)
	r.strict = append(slices.Clone(r.tested), "--require-ttl")
	return r, nil
}

// buildCellserver builds cellserver and returns its path.
func buildCellserver(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "cellserver")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/cellserver")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cellserver, in lab/clients of its source: %w: %s", err, out)
	}
	return binary, nil
}

// conclude writes or compares the page, and reports what failed.
func conclude(s settings, results []result, stderr io.Writer) error {
	var failed []string
	missing := false
	rows, failures := judge(results)
	for _, r := range results {
		switch {
		case r.missing != "":
			missing = true
			text := fmt.Sprintf("%s is not run: sudo apt-get install %s", r.program.name, r.missing)
			_, _ = fmt.Fprintln(stderr, text)
			if s.check {
				failed = append(failed, text)
			}
		case r.err != nil:
			failed = append(failed, fmt.Sprintf("%s: %v", r.program.name, r.err))
		}
	}
	if failed = append(failed, failures...); len(failed) > 0 {
		return fmt.Errorf("failed:\n%s", strings.Join(failed, "\n"))
	}
	page := pageOf(rows)
	switch {
	case missing:
		_, err := fmt.Fprintf(stderr, "%s is not written: not all programs can run\n", s.page)
		return err
	case s.check:
		return compare(s.page, page)
	}
	if err := os.WriteFile(s.page, []byte(page), 0o644); err != nil { //nolint:gosec // a page for all to read
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
