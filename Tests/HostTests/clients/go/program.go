// Program speaks the protocol on standard input and output, with the Go client in between. client_tests.py tells what is asked
// of it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"imageworker"
)

type empty struct{}

// method has the types of a method's parameters and result.
type method struct{ params, result any }

var methods = map[string]method{
	"initialize": {imageworker.InitializeParams{}, imageworker.InitializeResult{}},
	"load":       {imageworker.LoadParams{}, imageworker.Image{}},
	"prefetch":   {imageworker.PrefetchParams{}, imageworker.PrefetchResult{}},
	"probe":      {imageworker.ProbeParams{}, imageworker.ProbeResult{}},
	"process":    {imageworker.ProcessParams{}, imageworker.ProcessResult{}},
	"cancel":     {imageworker.CancelParams{}, imageworker.CancelResult{}},
	"prioritize": {imageworker.PrioritizeParams{}, imageworker.PrioritizeResult{}},
	"pause":      {empty{}, imageworker.PauseResult{}},
	"resume":     {empty{}, imageworker.PauseResult{}},
	"query":      {imageworker.QueryParams{}, imageworker.QueryResult{}},
	"store":      {imageworker.StoreParams{}, imageworker.Image{}},
	"clear":      {imageworker.ClearParams{}, imageworker.ClearResult{}},
	"release":    {imageworker.ReleaseParams{}, imageworker.ReleaseResult{}},
	"stats":      {empty{}, imageworker.StatsResult{}},
	"metrics":    {empty{}, imageworker.MetricsResult{}},
	"configure":  {imageworker.Options{}, imageworker.Options{}},
	"trace":      {imageworker.TraceParams{}, imageworker.TraceResult{}},
	"shutdown":   {imageworker.ShutdownParams{}, empty{}},
}

// members are the names of a struct's members in the protocol, with those of their members.
func members(kind reflect.Type) map[string]any {
	found := map[string]any{}
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct {
		return found
	}
	for i := 0; i < kind.NumField(); i++ {
		if name := strings.Split(kind.Field(i).Tag.Get("json"), ",")[0]; name != "-" {
			found[name] = members(kind.Field(i).Type)
		}
	}
	return found
}

func printNames() {
	params, results, classes, structs := map[string][]string{}, map[string]any{}, map[string][]string{}, map[string]any{}
	for name, it := range methods {
		params[name] = []string{}
		for member := range members(reflect.TypeOf(it.params)) {
			params[name] = append(params[name], member)
		}
		results[name] = members(reflect.TypeOf(it.result))
	}
	for _, it := range []any{
		imageworker.Client{}, imageworker.Crop{}, imageworker.FocalPoint{}, imageworker.HostFile{}, imageworker.Options{},
		imageworker.OutputParams{}, imageworker.Transform{}, imageworker.Want{}, imageworker.ErrorData{},
	} {
		structs[reflect.TypeOf(it).Name()] = members(reflect.TypeOf(it))
	}
	for kind, class := range imageworker.Classes {
		for ; class != nil; class = class.Parent {
			classes[kind] = append(classes[kind], class.Name)
		}
	}
	say(map[string]any{"params": params, "results": results, "classes": classes, "structs": structs})
}

var printing sync.Mutex

func say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	text = []byte(ascii(string(text)))
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// ascii escapes what is not, as the worker does.
func ascii(text string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < 128 {
			out.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&out, "\\u%04x", unit)
		}
	}
	return out.String()
}

func sayResult(id any, result any, err error) {
	line := map[string]any{"jsonrpc": "2.0", "id": id, "result": result}
	if err != nil {
		delete(line, "result")
		line["error"] = refusal(err)
	}
	say(line)
}

func refusal(err error) any {
	var it *imageworker.Error
	if errors.Is(err, context.DeadlineExceeded) {
		it = &imageworker.Error{Kind: "timeout", Message: err.Error(), Data: imageworker.ErrorData{Phase: "client"}}
	} else if !errors.As(err, &it) {
		panic(err)
	}
	text, _ := json.Marshal(it.Data)
	var data map[string]any
	_ = json.Unmarshal(text, &data)
	data["kind"], data["retryable"] = it.Kind, it.Retryable
	if it.Kind == "workerExited" {
		data["lost"], data["exitStatus"], data["log"] = it.Lost, it.ExitStatus, it.Log
	}
	return map[string]any{"code": it.Code, "message": it.Message, "data": data}
}

type request struct {
	ID          any
	Method      string
	Params      json.RawMessage
	GiveUpAfter float64
	Program     string
}

type program struct {
	worker *imageworker.Worker
	files  []*os.File
}

// own does what is asked of the program itself.
func (p *program) own(ctx context.Context, what string, params map[string]any) (any, error) {
	text := func(name string) string { return params[name].(string) }
	switch what {
	case "pid":
		return p.worker.Pid(), nil
	case "open":
		file, err := os.Open(text("path"))
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file)
		return file.Fd(), nil
	case "ready":
		return p.worker.Ready(ctx)
	case "loadAll":
		var entries []imageworker.LoadParams
		for _, url := range params["urls"].([]any) {
			entries = append(entries, imageworker.LoadParams{URL: url.(string)})
		}
		outcomes := []any{}
		p.worker.LoadAll(ctx, entries, 3, func(outcome imageworker.Outcome) {
			var it *imageworker.Error
			if errors.As(outcome.Err, &it) {
				outcomes = append(outcomes, []any{outcome.Index, it.Kind})
			} else {
				outcomes = append(outcomes, []any{outcome.Index, outcome.Image.Width})
			}
		})
		return outcomes, nil
	case "takePixels":
		image, err := p.worker.Load(ctx, imageworker.LoadParams{URL: text("url"), Deliver: "pixels"})
		if err != nil {
			return nil, err
		}
		rows, err := p.worker.TakePixels(ctx, image)
		return len(rows), err
	case "queryBinary":
		key, _ := hex.DecodeString(text("key"))
		return p.worker.Query(ctx, imageworker.QueryParams{Key: string(key)})
	case "close":
		return nil, p.worker.Close()
	}
	panic(what)
}

// withObjects makes an object of each URL of a prefetch.
func withObjects(name string, params json.RawMessage) json.RawMessage {
	var it map[string]any
	if name != "prefetch" || json.Unmarshal(params, &it) != nil {
		return params
	}
	for i, item := range it["urls"].([]any) {
		if url, isText := item.(string); isText {
			it["urls"].([]any)[i] = map[string]string{"url": url}
		}
	}
	text, _ := json.Marshal(it)
	return text
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--names" {
		printNames()
		return
	}
	worker := imageworker.New(imageworker.Settings{
		Binary: os.Getenv("WORKER_OF_CLIENT"), Arguments: os.Args[1:], MaxRestarts: 3, LongestPause: time.Second,
		OnLog: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	p := &program{worker: worker}
	ids := map[any]int64{}
	var running sync.WaitGroup
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			break
		}
		var it request
		if err := json.Unmarshal(line, &it); err != nil {
			panic(err)
		}
		ctx, cancel := context.Background(), func() {}
		if it.GiveUpAfter > 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(it.GiveUpAfter*float64(time.Second)))
		}
		running.Add(1)
		if it.Program != "" || it.Method == "shutdown" {
			go func() {
				defer running.Done()
				var params map[string]any
				_ = json.Unmarshal(it.Params, &params)
				if it.Method == "shutdown" {
					mode, _ := params["mode"].(string)
					worker.Shutdown(imageworker.ShutdownParams{Mode: mode})
					sayResult(it.ID, empty{}, nil)
					return
				}
				result, err := p.own(ctx, it.Program, params)
				sayResult(it.ID, result, err)
			}()
			continue
		}
		if !p.call(ctx, it, ids, running.Done) {
			running.Done()
		}
		_ = cancel
	}
	worker.Shutdown(imageworker.ShutdownParams{})
	running.Wait()
}

// call sends a request, and prints its answer when it comes. It returns whether it was sent.
func (p *program) call(ctx context.Context, it request, ids map[any]int64, done func()) bool {
	params := reflect.New(reflect.TypeOf(methods[it.Method].params))
	if len(it.Params) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(withObjects(it.Method, it.Params)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(params.Interface()); err != nil { // A Go program with this parameter would not compile.
			member := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
			data := map[string]any{"kind": "invalidParams", "retryable": false, "member": member}
			say(map[string]any{"jsonrpc": "2.0", "id": it.ID, "error": map[string]any{"code": -32602, "message": err.Error(), "data": data}})
			return false
		}
	}
	value := params.Elem().Interface()
	switch typed := value.(type) {
	case imageworker.CancelParams:
		if id, isKnown := ids[typed.ID]; isKnown {
			typed.ID = id
		}
		value = typed
	case imageworker.PrioritizeParams:
		if id, isKnown := ids[typed.ID]; isKnown {
			typed.ID = id
		}
		value = typed
	case imageworker.Options: // In order, and remembered.
		_, err := p.worker.Configure(ctx, typed)
		if err != nil {
			sayResult(it.ID, nil, err)
			return false
		}
		value = empty{}
	}
	call, err := p.worker.Submit(ctx, it.Method, value, func(event imageworker.Event) {
		var params map[string]any
		_ = json.Unmarshal(event.Params, &params)
		params["id"] = it.ID
		say(map[string]any{"jsonrpc": "2.0", "method": event.Name, "params": params})
	})
	if err != nil {
		sayResult(it.ID, nil, err)
		return false
	}
	ids[it.ID] = call.ID()
	go func() {
		defer done()
		if it.Method == "configure" { // With its nulls.
			var result json.RawMessage
			err := call.Wait(ctx, &result)
			sayResult(it.ID, result, err)
			return
		}
		result := reflect.New(reflect.TypeOf(methods[it.Method].result))
		err := call.Wait(ctx, result.Interface())
		sayResult(it.ID, result.Interface(), err)
	}()
	return true
}
