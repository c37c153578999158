// Demo loads the URLs given as arguments, all at once, and prints the outcome of each. The exit status is 1 if a load failed, and
// 69 if the worker cannot be started.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"imageworker"
)

func main() {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: demo URL...")
		os.Exit(64)
	}
	os.Exit(run(context.Background(), os.Args[1:]))
}

func run(ctx context.Context, urls []string) (status int) {
	worker := imageworker.New(imageworker.Settings{})
	defer worker.Close()
	if _, err := worker.Ready(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 69
	}
	var entries []imageworker.LoadParams
	for _, url := range urls {
		entries = append(entries, imageworker.LoadParams{URL: url})
	}
	worker.LoadAll(ctx, entries, 100, func(outcome imageworker.Outcome) {
		image := outcome.Image
		if outcome.Err != nil {
			fmt.Fprintln(os.Stderr, outcome.Err, urls[outcome.Index])
			status = 1
			return
		}
		fmt.Printf("%s  %s %d x %d  %s\n", image.Cache, image.Format, image.Width, image.Height, image.Path)
	})
	return status
}
