package envoyconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cellserver/internal/base/yamlfile"
)

// load returns the rules of a directory. The error has one line.
func (o Options) load(dir string) (*Rules, error) {
	paths, skipped, err := o.pathsOf(dir)
	if err != nil {
		return nil, err
	}
	files := make([]File, len(paths))
	for i, path := range paths {
		text, err := yamlfile.Read(path)
		if err != nil {
			return nil, err
		}
		files[i] = File{path, text}
	}
	rules, err := o.rulesOf(files)
	if err != nil {
		return nil, err
	}
	rules.Files, rules.Skipped = len(paths), skipped
	return rules, nil
}

// pathsOf returns the files to read, and the names of others, but for hidden ones, as a ConfigMap has.
func (o Options) pathsOf(dir string) (paths, skipped []string, err error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, nil, errors.New(dir + " is a file; give its directory, or, if it has limits:, give it to --limits-file")
	}
	if o.AllFiles {
		paths, err = o.allPathsOf(dir)
		return paths, nil, err
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the directory: %w", err)
	}
	for _, e := range entries {
		switch extension := filepath.Ext(e.Name()); {
		case strings.HasPrefix(e.Name(), "."):
		case extension == ".yaml", extension == ".yml":
			paths = append(paths, filepath.Join(dir, e.Name()))
		default:
			skipped = append(skipped, e.Name())
		}
	}
	if len(paths) == 0 {
		return nil, nil, errors.New(dir + " has no *.yaml")
	}
	return paths, skipped, nil
}

// allPathsOf returns all regular files of a directory and of those below it, sorted by name. Links to files
// are followed, and links to directories are not, as in envoyproxy/ratelimit. dir itself may be a link: all
// files are read where it leads now.
func (o Options) allPathsOf(dir string) (paths []string, err error) {
	from, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		if !errors.As(err, new(*fs.PathError)) { // of a directory that is a file
			err = &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		return nil, fmt.Errorf("cannot read the directory: %w", err)
	}
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("cannot read the directory: %w", err)
		case path == from:
			return nil
		case o.isHidden(e.Name()) && e.IsDir():
			return fs.SkipDir
		case o.isHidden(e.Name()), e.IsDir():
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // a pipe would be waited for
			paths = append(paths, path)
		}
		return nil
	})
	return paths, err
}

func (o Options) isHidden(name string) bool {
	return strings.HasPrefix(name, "..") || o.IgnoreDotFiles && strings.HasPrefix(name, ".")
}

// stateOf returns the names, sizes and times of a directory's files. It follows links, as those of a
// ConfigMap change where they lead.
func (o Options) stateOf(dir string) string {
	paths, _, err := o.pathsOf(dir)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%q %v\n", path, err)
			continue
		}
		fmt.Fprintf(&b, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}
