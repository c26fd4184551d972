class Trainer:
    def _start_training_state(self): pass
