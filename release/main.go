// Release makes what a release has beside the binaries: licenses, software bills of materials and the container image.
// The configuration of GoReleaser, .goreleaser.yaml, and the Makefile's target release run it from the repository's root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"cellserver/internal/base/buildinfo"
)

const usage = `usage:
  release version                  prints the version that the source belongs to
  release prepare VERSION          writes release/generated, before the build
  release sbom BINARY FILE         writes the bill of materials of a binary, in CycloneDX's format
  release image DIST               writes the container image of a finished build to DIST, as an OCI archive
  release push DIST REPOSITORY     pushes that image to a registry, with its version as the tag`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch command, args := strings.Join(args[:min(1, len(args))], ""), args[min(1, len(args)):]; {
	case command == "version" && len(args) == 0:
		fmt.Println(buildinfo.Version)
		return nil
	case command == "prepare" && len(args) == 1:
		return prepare(ctx, args[0])
	case command == "sbom" && len(args) == 2:
		return writeSBOM(args[0], args[1])
	case command == "image" && len(args) == 1:
		return writeImage(args[0])
	case command == "push" && len(args) == 2:
		return pushImage(ctx, args[0], args[1])
	}
	return errors.New(usage)
}
