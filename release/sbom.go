package main

import (
	"crypto/sha256"
	binaryinfo "debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"cellserver/internal/base/buildinfo"
)

// writeSBOM lists the modules that the linker has put into a binary, as the binary itself says. The same binary has the
// same document.
func writeSBOM(binary, document string) error {
	info, err := binaryinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("sbom: %w", err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("sbom: %w", err)
	}
	f, err := os.Create(document)
	if err != nil {
		return fmt.Errorf("sbom: %w", err)
	}
	encoder := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON)
	err = encoder.SetPretty(true).EncodeVersion(bom(info, sha256.Sum256(content)), cdx.SpecVersion1_6)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("sbom: %s: %w", document, err)
	}
	return nil
}

func bom(info *debug.BuildInfo, hash [sha256.Size]byte) *cdx.BOM {
	main := cdx.Component{
		BOMRef:  info.Main.Path,
		Type:    cdx.ComponentTypeApplication,
		Name:    info.Main.Path,
		Version: buildinfo.Version,
		Hashes:  &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(hash[:])}},
		Properties: &[]cdx.Property{
			{Name: "cellserver:platform", Value: setting(info, "GOOS") + "/" + setting(info, "GOARCH")},
			{Name: "cellserver:revision", Value: setting(info, "vcs.revision")},
		},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}},
	}
	components := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, library(m.Path, m.Version))
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	b := cdx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, hash[:]).URN()
	b.Metadata = &cdx.Metadata{Timestamp: commitTime(info).Format(time.RFC3339), Component: &main}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return b
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// commitTime is the time that everything in a release has.
func commitTime(info *debug.BuildInfo) time.Time {
	t, _ := time.Parse(time.RFC3339, setting(info, "vcs.time"))
	return t
}

func library(path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}
