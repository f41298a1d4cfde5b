// Release makes a release's licenses, manual and container image. GoReleaser, as .goreleaser.yaml says, and
// make release run it from the repository's root.
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

const synopsis = `usage:
  release version                  prints the source's version
  release prepare VERSION          writes lab/release/generated, before the build
  release image DIST               writes DIST, a finished build, as a container image, an OCI archive in DIST
  release push DIST [IMAGE]        pushes that image with its version as the tag; to IMAGE of names.env by default`

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
	case command == "image" && len(args) == 1:
		return writeImage(args[0])
	case command == "push" && (len(args) == 1 || len(args) == 2):
		return pushImage(ctx, args[0], append(args, published("IMAGE"))[1])
	}
	return errors.New(synopsis)
}
