package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	user    = 65532 // nonroot, by convention of images without a distribution
	dataDir = "/var/lib/cellserver"
)

// distribution is a directory that GoReleaser has filled.
type distribution struct {
	dir      string
	version  string
	binaries []binary          // Linux's
	licenses map[string]string // by name
}

type binary struct {
	path, arch string
	info       *debug.BuildInfo
}

func readDistribution(dir string) (*distribution, error) {
	var metadata struct{ Version string }
	var artifacts []struct {
		Path, Goos, Goarch, Type string
	}
	if err := readJSON(filepath.Join(dir, "metadata.json"), &metadata); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, "artifacts.json"), &artifacts); err != nil {
		return nil, err
	}
	root := filepath.Dir(filepath.Clean(dir))
	licenses, err := readLicenses(root)
	if err != nil {
		return nil, err
	}
	d := &distribution{dir: dir, version: metadata.Version, licenses: licenses}
	for _, a := range artifacts {
		if a.Type != "Binary" || a.Goos != "linux" {
			continue
		}
		path := filepath.Join(root, a.Path)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		d.binaries = append(d.binaries, binary{path: path, arch: a.Goarch, info: info})
	}
	// GoReleaser lists them as they were finished.
	slices.SortFunc(d.binaries, func(a, b binary) int { return strings.Compare(a.arch, b.arch) })
	if len(d.binaries) == 0 {
		return nil, fmt.Errorf("%s has no binary for linux", dir)
	}
	return d, nil
}

// readLicenses returns the program's own and those of the modules in it, which are in the archives, too.
func readLicenses(root string) (map[string]string, error) {
	licenses := map[string]string{}
	for _, path := range []string{"LICENSE", thirdParty} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		licenses[filepath.Base(path)] = string(text)
	}
	return licenses, nil
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// index returns the image for all architectures.
func (d *distribution) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range d.binaries {
		image, err := d.image(b)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", b.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}},
		})
	}
	// Registries show these of an image for several architectures, not an image's labels.
	annotated, ok := mutate.Annotations(index, d.labels(d.binaries[0])).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("an index with annotations is none")
	}
	return annotated, nil
}

// image is the Dockerfile's, with the licenses of all modules in the binary.
func (d *distribution) image(b binary) (v1.Image, error) {
	layer, err := d.layer(b)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: commitTime(b.info)}, CreatedBy: "release image"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", b.arch, v1.Time{Time: commitTime(b.info)}
	file.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Env:          []string{"CELLSERVER_ADDR=:6380", "CELLSERVER_METRICS_ADDR=:9380"},
		ExposedPorts: map[string]struct{}{"6380/tcp": {}, "9380/tcp": {}},
		Entrypoint:   []string{"/cellserver"},
		// Docker's; other engines ignore it, and Kubernetes has probes of its own.
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/cellserver", "health"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 15 * time.Minute,
		},
		Labels: d.labels(b),
	}
	return mutate.ConfigFile(image, file)
}

func setting(info *debug.BuildInfo, key string) string {
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
	if i < 0 {
		return ""
	}
	return info.Settings[i].Value
}

// commitTime returns the time of everything in a release.
func commitTime(info *debug.BuildInfo) time.Time {
	t, _ := time.Parse(time.RFC3339, setting(info, "vcs.time"))
	return t
}

func (d *distribution) labels(b binary) map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "cellserver",
		"org.opencontainers.image.description": "Rate limiter that speaks the Redis protocol",
		"org.opencontainers.image.version":     d.version,
		"org.opencontainers.image.revision":    setting(b.info, "vcs.revision"),
		"org.opencontainers.image.created":     commitTime(b.info).Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "MIT",
	}
	// GitHub links a package to its repository by this label.
	if repository := published("REPOSITORY"); !strings.Contains(repository, "/OWNER/") {
		labels["org.opencontainers.image.source"] = "https://" + repository
	}
	return labels
}

// layer has the binary, a link to it under the name of envoyproxy/ratelimit, the licenses,
// and an empty directory for data, which belongs to the user.
func (d *distribution) layer(b binary) (v1.Layer, error) {
	content, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add := func(h tar.Header, content string) error {
		h.ModTime, h.Size = commitTime(b.info), int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := io.WriteString(w, content)
		return err
	}
	err = add(tar.Header{Typeflag: tar.TypeReg, Name: "cellserver", Mode: 0o755}, string(content))
	err = errors.Join(err, add(tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}, ""))
	err = errors.Join(err, add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/ratelimit", Linkname: "/cellserver", Mode: 0o777}, ""))
	err = errors.Join(err, add(tar.Header{Typeflag: tar.TypeDir, Name: "licenses/", Mode: 0o755}, ""))
	for _, name := range slices.Sorted(maps.Keys(d.licenses)) {
		err = errors.Join(err, add(tar.Header{Typeflag: tar.TypeReg, Name: "licenses/" + name, Mode: 0o644}, d.licenses[name]))
	}
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "var/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "var/lib/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: dataDir[1:] + "/", Mode: 0o700, Uid: user, Gid: user},
	} {
		err = errors.Join(err, add(h, ""))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// writeImage writes an OCI image layout as a tar file, which podman, docker, skopeo and crane read.
func writeImage(dist string) (err error) {
	d, err := readDistribution(dist)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	index, err := d.index()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	dir, err := os.MkdirTemp(dist, "image")
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	reference := published("IMAGE") + ":" + d.version
	ref, err := name.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": reference,                                // for podman load and skopeo
		"io.containerd.image.name":          strings.TrimPrefix(ref.Name(), "index."), // for docker load
	})); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	archive := filepath.Join(dist, "cellserver_"+d.version+"_image.tar")
	if err := writeTar(archive, dir, commitTime(d.binaries[0].info)); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	fmt.Println(archive, digest)
	return nil
}

// writeTar archives the files of a directory in their order, all as of one time.
func writeTar(archive, dir string, at time.Time) error {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(content)), ModTime: at}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, w.Close(), f.Close())
}

// pushImage logs in as docker and podman do, by the files that their login writes.
func pushImage(ctx context.Context, dist, repository string) error {
	d, err := readDistribution(dist)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	index, err := d.index()
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	ref, err := name.ParseReference(repository + ":" + d.version)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	fmt.Printf("%s@%s\n", ref, digest)
	return nil
}
