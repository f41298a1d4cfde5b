package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"cellserver/internal/buildinfo"
)

const generated = "release/generated"

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
	if err := writeLicenses(ctx); err != nil {
		return fmt.Errorf("prepare: licenses: %w", err)
	}
	return nil
}

// writeLicenses collects the licenses of all modules that are in a binary for any system: most require that whoever is
// given the binary is given them, too. Debian wants them and the program's own in one file, copyright.
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
	if err := os.WriteFile(filepath.Join(generated, "THIRD_PARTY_LICENSES"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(generated, "copyright"), []byte(string(own)+"\n"+b.String()), 0o644)
}

type module struct{ name, dir string }

// linkedModules returns the modules with packages of the server on any of the systems, and Go itself, in order.
func linkedModules(ctx context.Context, systems ...string) ([]module, error) {
	dirs := map[string]string{}
	for _, system := range systems {
		const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}	{{.Dir}}{{end}}{{end}}`
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "./cmd/cellserver")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				dirs[name] = dir
			}
		}
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
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
