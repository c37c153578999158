package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"imageworker"
)

// What only the Go client has: goroutines, contexts and open files. test_go_client.py runs it.

var origin = os.Getenv("ORIGIN")

func command(t *testing.T, name string) {
	t.Helper()
	answer, err := http.Get(os.Getenv("ORIGIN_CONTROL") + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != 200 {
		t.Fatalf("%s", text)
	}
}

func newWorker(t *testing.T) *imageworker.Worker {
	worker := imageworker.New(imageworker.Settings{Arguments: []string{"--cache-dir=" + t.TempDir()}})
	t.Cleanup(func() { worker.Close() })
	return worker
}

func TestGoroutinesWhileTheWorkerIsKilled(t *testing.T) {
	worker, ctx := newWorker(t), context.Background()
	var mutex sync.Mutex
	var group sync.WaitGroup
	tally := map[string]int{}
	for number := 0; number < 100; number++ {
		number := number
		group.Add(1)
		go func() {
			defer group.Done()
			for turn := 0; turn < 4; turn++ {
				url := fmt.Sprintf("%s/image/%d.png?width=%d", origin, number, 20+turn)
				image, err := worker.Load(ctx, imageworker.LoadParams{URL: url})
				outcome := "right"
				if errors.Is(err, imageworker.ErrWorkerExited) {
					outcome = "exited"
				} else if err != nil || image.Width != 20+turn {
					outcome = fmt.Sprint(err)
				}
				mutex.Lock()
				tally[outcome]++
				mutex.Unlock()
				if number%50 == 25 && turn == 2 {
					_ = syscall.Kill(worker.Pid(), syscall.SIGKILL)
				}
			}
		}()
	}
	group.Wait()
	if tally["right"]+tally["exited"] != 400 {
		t.Fatal(tally)
	}
}

func TestAContextCancels(t *testing.T) {
	worker := newWorker(t)
	command(t, "reset")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		command(t, "await?gate=never&held=1")
		cancel()
	}()
	_, err := worker.Load(ctx, imageworker.LoadParams{URL: origin + "/image/1.png?hold=never"})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	command(t, "await?left=1")
	if _, err := worker.Load(ctx, imageworker.LoadParams{URL: "data:,"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestHandlers(t *testing.T) {
	worker, ctx := newWorker(t), context.Background()
	command(t, "reset")
	calls := 0
	params := imageworker.LoadParams{URL: origin + "/image/1.png", OnEvent: func(imageworker.Event) {
		if _, err := worker.Stats(ctx); err == nil {
			calls++
		}
	}}
	if _, err := worker.Load(ctx, params); err != nil || calls == 0 {
		t.Fatal("a handler may call the worker", err, calls)
	}
	defer func() {
		if recover() != "from the handler" {
			t.Fatal("a panic of a handler comes out")
		}
		command(t, "await?left=1")
	}()
	params.URL += "?hold=never"
	params.OnEvent = func(imageworker.Event) {
		command(t, "await?gate=never&held=1")
		panic("from the handler")
	}
	_, _ = worker.Load(ctx, params)
}

func TestAFileWithoutAName(t *testing.T) {
	worker, ctx := newWorker(t), context.Background()
	image, err := worker.Load(ctx, imageworker.LoadParams{URL: origin + "/image/2.png", Deliver: "data"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "upload")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, _ = file.Write(image.Data)
	_ = os.Remove(file.Name())
	thumb := imageworker.OutputParams{Transform: &imageworker.Transform{Width: 8}, Deliver: "data"}
	outputs := map[string]imageworker.OutputParams{"thumb": thumb}
	result, err := worker.ProcessFile(ctx, file, imageworker.ProcessParams{Outputs: outputs})
	if err != nil || result.Width != 32 || result.Outputs["thumb"].Width != 8 || len(result.Outputs["thumb"].Data) == 0 {
		t.Fatal(result, err)
	}
}

func TestAStoppedWorkerCanBeGivenUpAndClosed(t *testing.T) {
	worker := newWorker(t)
	if _, err := worker.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(worker.Pid(), syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	params := imageworker.StoreParams{Key: "k", Data: make([]byte, 3_000_000)}
	if _, err := worker.Store(ctx, params); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	_ = syscall.Kill(worker.Pid(), syscall.SIGCONT)
	worker.Close()
	_, err := worker.Stats(context.Background())
	if !errors.Is(err, imageworker.ErrClosed) || !errors.Is(err, imageworker.ErrLifecycle) || errors.Is(err, imageworker.ErrNetwork) {
		t.Fatal(err)
	}
}
