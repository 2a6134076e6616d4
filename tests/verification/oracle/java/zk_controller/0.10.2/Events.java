package org.I0Itec.zkclient;

import java.lang.reflect.Field;

/** Puts tasks into the queue of what ZooKeeper has told. */
public final class Events {
    private final ZkEventThread thread;

    public Events(ZkClient client) throws Exception {
        Field field = ZkClient.class.getDeclaredField("_eventThread");
        field.setAccessible(true);
        thread = (ZkEventThread) field.get(client);
    }

    public void put(Runnable task) {
        thread.send(new ZkEventThread.ZkEvent("task") {
            @Override
            public void run() {
                task.run();
            }
        });
    }
}
