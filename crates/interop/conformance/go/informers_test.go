package conformance

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// A shared informer, which starts with a list that is streamed as a watch.
func TestSharedInformersFollowWhatHappens(t *testing.T) {
	at := start(t)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	for number := range 10 {
		_, err := maps.Create(at.ctx, configMap(fmt.Sprint("before", number)), metav1.CreateOptions{})
		check(t, err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(at.client, 0, informers.WithNamespace(at.namespace))
	informer := factory.Core().V1().ConfigMaps()
	var added, changed, deleted atomic.Int32
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { changed.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	})
	check(t, err)
	check(t, informer.Informer().AddIndexers(cache.Indexers{"key": func(object any) ([]string, error) {
		return []string{object.(*corev1.ConfigMap).Data["key"]}, nil
	}}))
	factory.Start(at.ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(at.ctx.Done()) {
		require(t, synced, "%v is not synced", kind)
	}
	listed, err := informer.Lister().ConfigMaps(at.namespace).List(labels.SelectorFromSet(labels.Set{"app": "a"}))
	check(t, err)
	require(t, len(listed) == 10, "%d listed", len(listed))
	found, err := informer.Informer().GetIndexer().ByIndex("key", "value")
	check(t, err)
	require(t, len(found) == 10, "%d by index", len(found))
	_, err = maps.Create(at.ctx, configMap("after"), metav1.CreateOptions{})
	check(t, err)
	later := configMap("before0")
	later.Data["key"] = "other"
	_, err = maps.Update(at.ctx, later, metav1.UpdateOptions{})
	check(t, err)
	check(t, maps.Delete(at.ctx, "before1", metav1.DeleteOptions{}))
	eventually(t, "every change is seen", func() bool {
		// A real cluster adds a ConfigMap of its own to each namespace.
		return added.Load() >= 11 && changed.Load() >= 1 && deleted.Load() == 1
	})
	eventually(t, "the index follows", func() bool {
		found, err := informer.Informer().GetIndexer().ByIndex("key", "other")
		return err == nil && len(found) == 1
	})
}

func TestMetadataInformers(t *testing.T) {
	at := start(t)
	client, err := metadata.NewForConfig(at.config)
	check(t, err)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, at.namespace, nil)
	informer := factory.ForResource(secrets)
	informer.Informer()
	factory.Start(at.ctx.Done())
	factory.WaitForCacheSync(at.ctx.Done())
	_, err = at.client.CoreV1().Secrets(at.namespace).Create(at.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"a": "b"}},
		StringData: map[string]string{"password": "x"},
	}, metav1.CreateOptions{})
	check(t, err)
	eventually(t, "the metadata is seen", func() bool {
		found, err := informer.Lister().ByNamespace(at.namespace).Get("s")
		return err == nil && found.(*metav1.PartialObjectMetadata).Annotations["a"] == "b"
	})
}

// A watch that resumes after interruptions, from the resource versions of bookmarks.
func TestRetriedWatchesSeeEveryChange(t *testing.T) {
	at := start(t)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	list, err := maps.List(at.ctx, metav1.ListOptions{})
	check(t, err)
	source := cache.NewFilteredListWatchFromClient(at.client.CoreV1().RESTClient(), "configmaps", at.namespace,
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermNotEqualSelector("metadata.name", "kube-root-ca.crt").String()
			// The watch is interrupted every second.
			one := int64(1)
			options.TimeoutSeconds = &one
		})
	events, err := watchtools.NewRetryWatcherWithContext(at.ctx, list.ResourceVersion, source)
	check(t, err)
	defer events.Stop()
	go func() {
		for number := range 30 {
			_, _ = maps.Create(at.ctx, configMap(fmt.Sprintf("m%02d", number)), metav1.CreateOptions{})
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for number := 0; number < 30; {
		select {
		case event := <-events.ResultChan():
			if event.Type != watch.Added {
				continue
			}
			name := event.Object.(*corev1.ConfigMap).Name
			require(t, name == fmt.Sprintf("m%02d", number), "%s comes as number %d", name, number)
			number++
		case <-at.ctx.Done():
			t.Fatalf("%d seen", number)
		}
	}
}
