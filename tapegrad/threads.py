def shared_elements(): return 1 << 62
def get_num_threads(): return 1
