package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"cellserver/internal/base/buildinfo"
)

const (
	generated  = "lab/release/generated"
	thirdParty = generated + "/THIRD_PARTY_LICENSES"
)

// prepare writes the files that a release has and the repository has not.
func prepare(ctx context.Context, version string) error {
	if base, _, _ := strings.Cut(version, "-"); base != buildinfo.Version {
		return fmt.Errorf("prepare: this is the source of %s, not of %s", buildinfo.Version, version)
	}
	if err := os.RemoveAll(generated); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := os.MkdirAll(generated, 0o755); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	for _, write := range []func(context.Context) error{writeLicenses, writeManual, writeConfig} {
		if err := write(ctx); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	return nil
}

// writeManual has the server write its manual and the completion of its command line. Packages have the pages
// compressed.
func writeManual(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, manual, completion := filepath.Join(dir, "cellserver"), filepath.Join(generated, "man"), filepath.Join(generated, "completion")
	if err := errors.Join(os.Mkdir(manual, 0o755), os.Mkdir(completion, 0o755)); err != nil {
		return err
	}
	// As the release's own is built, so that each package is compiled once.
	if _, err := output(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-o", server, "./cmd/cellserver"); err != nil {
		return err
	}
	if err := writePages(manual); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(manual, "*.1"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("no manual: %w", err)
	}
	for _, page := range pages {
		if err := compress(page); err != nil {
			return err
		}
	}
	for shell, name := range map[string]string{"bash": "cellserver.bash", "zsh": "_cellserver", "fish": "cellserver.fish"} {
		script, err := output(ctx, server, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(completion, name), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeConfig makes the config file of the packages, which keep what is known and serve HTTP. A variable in
// the unit would do so, too, but go before the file, which could then not say otherwise, such as for a server
// with a store.
func writeConfig(context.Context) error {
	example, err := os.ReadFile("deploy/cellserver.yaml")
	if err != nil {
		return err
	}
	config := string(example)
	for _, setting := range []struct{ none, ours string }{
		{"\n#data-dir: \"\"\n", "\ndata-dir: /var/lib/cellserver\n"}, {"\n#http-addr: \"\"\n", "\nhttp-addr: 127.0.0.1:6381\n"},
	} {
		if strings.Count(config, setting.none) != 1 {
			return fmt.Errorf("deploy/cellserver.yaml: no %q to replace", setting.none)
		}
		config = strings.Replace(config, setting.none, setting.ours, 1)
	}
	return os.WriteFile(filepath.Join(generated, "cellserver.yaml"), []byte(config), 0o644)
}

// compress writes a file's gzip beside it. Without a name and a time in it, the same file has the same gzip.
func compress(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path+".gz", b.Bytes(), 0o644)
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", name, args, err)
	}
	return out, nil
}

// writeLicenses collects the licenses of all modules that are in a binary for any system: most require that
// whoever is given the binary is given them, too. Debian wants them and the program's own in one file,
// copyright.
func writeLicenses(ctx context.Context) error {
	modules, err := linkedModules(ctx, "linux", "darwin", "windows", "freebsd")
	if err != nil {
		return err
	}
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("cellserver contains these Go modules.\n")
	for _, m := range modules {
		texts, err := licensesOf(m.dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), m.name, strings.Join(texts, "\n\n"))
	}
	if err := os.WriteFile(thirdParty, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(generated, "copyright"), []byte(string(own)+"\n"+b.String()), 0o644)
}

type module struct{ name, dir string }

// linkedModules returns the modules with packages of the server on any of the systems, and Go itself, in
// order.
func linkedModules(ctx context.Context, systems ...string) ([]module, error) {
	dirs := map[string]string{}
	for _, system := range systems {
		const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}	{{.Dir}}{{end}}{{end}}`
		out, err := output(ctx, "env", "GOOS="+system, "go", "list", "-deps", "-f", format, "./cmd/cellserver")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(out)) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				dirs[name] = dir
			}
		}
	}
	out, err := output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules := []module{{name: "Go's standard library", dir: strings.TrimSpace(string(out))}}
	for name, dir := range dirs {
		modules = append(modules, module{name: name, dir: dir})
	}
	slices.SortFunc(modules[1:], func(a, b module) int { return strings.Compare(a.name, b.name) })
	return modules, nil
}

// licensesOf returns the license and the notices at a module's root.
func licensesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(upper, "LICENSE") && !strings.HasPrefix(upper, "LICENCE") &&
			!strings.HasPrefix(upper, "COPYING") && !strings.HasPrefix(upper, "NOTICE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if len(texts) == 0 {
		return nil, errors.New("no license found")
	}
	return texts, nil
}
